/** Fits one screen of 80 columns and 24 lines, as each of the following does. */
export const HELP = `nestjs-distributed-lock <command> [options]

  ls [prefix]           the locks that are held or waited for
  show <name>           one lock: holders, fencing token, queue
  watch [prefix]        the same as ls, live
  release <name>        asks the holder to release it; --force takes it
  run <name> -- <cmd>   runs a command while it holds the lock
  doctor                what can cost a lock here, each with its cure
  fencing-sql           prints the migration of a fencing table

Where the locks are (one of the first four, or REDIS_URL):
  --url <url>           redis://, rediss:// or unix:///path/of/redis.sock
  --cluster <hosts>     host:port,host:port
  --sentinel <hosts>    host:port,host:port, with --master <name>
  --nodes <urls>        Redlock: three or more URLs with commas between
  --cacert, --cert, --key <file>   for rediss://, as of redis-cli
  --prefix <text>       the keyPrefix of the application (lock:); '' for none
A password comes with a URL, or as REDIS_USERNAME, REDIS_PASSWORD.

  --json                for scripts
  --timeout <time>      how long to wait for Redis (5s)
  <command> --help      all options of a command; --version
Exit codes: 0 done, 1 no such lock, 64 wrong call, 69 Redis fails, 75 busy`;

const WHERE = `Where the locks are: --url, --cluster, --sentinel with --master, --nodes,
--prefix, or REDIS_URL; see nestjs-distributed-lock --help`;

/** By command. */
export const COMMAND_HELP: Readonly<Record<string, string>> = {
  ls: `nestjs-distributed-lock ls [prefix] [options]

Lists the locks whose names begin with the prefix, by name: kind, holders, for
how long they have held it, how long until it ends by itself, how many wait,
and for how long the first of them has waited.

  --held                only locks that are held
  --waited              only locks that are waited for
  --limit <number>      at most so many (1000)
  --json                { "locks": […], "more": false }, times in ms
  --timeout <time>      how long to wait for Redis (5s)

${WHERE}
Exit codes: 0 done, 64 wrong call, 69 Redis cannot be used`,
  show: `nestjs-distributed-lock show <name> [options]

Shows all data of one lock in Redis: holders, fencing token, when it ends by
itself, and its queue in order.

  --json                one object, or null; times in ms, moments as ISO 8601
  --timeout <time>      how long to wait for Redis (5s)

${WHERE}
Exit codes: 0 held, 1 no such lock is held, 64 wrong call,
  65 the value under the name is no lock, 69 Redis cannot be used`,
  watch: `nestjs-distributed-lock watch [prefix] [options]

Shows what ls lists, again each second. Goes on when Redis is away, and shows
why. Ends with q or Ctrl-C.

  --held                only locks that are held
  --waited              only locks that are waited for
  --limit <number>      at most so many (1000)
  --interval <time>     time between two looks (1s)
  --json                a line for each look: { "at", "locks", "more" }, or
                        { "at", "error" }
  --timeout <time>      how long to wait for Redis (5s)

${WHERE}
Exit codes: 0 stopped, 64 wrong call, 128 + n after signal n`,
  release: `nestjs-distributed-lock release <name> [options]

Asks the holders of a lock to release it: the signal releaseRequested of their
leases aborts, and a command of run gets SIGTERM. They may go on. --force takes
the lock away from all holders. They are told, and may go on for a moment. The
terminal is asked before, unless --yes is given.

  --reason <text>       is told to the holders
  --force               takes the lock away
  --yes                 asks nothing, for scripts
  --json                { "asked": 1 }, or with --force { "released": true }
  --timeout <time>      how long to wait for Redis (5s)

${WHERE}
Exit codes: 0 asked or released, 1 not held, or no holder can be asked,
  64 wrong call, 65 the value under the name is no lock,
  69 Redis cannot be used`,
  run: `nestjs-distributed-lock run <name> [options] -- <command> [arguments]

Runs a command while it holds the lock, which is renewed. The command has
LOCK_NAME and LOCK_TOKEN (the fencing token) in its environment. When the lease
is lost, or 2 s before it ends without a renewal, the command and all that it
has started get SIGTERM, and SIGKILL when the lease ends. A name that begins
like an option: run [options] -- -name -- <command>

  --wait <time>         how long to wait for lock and Redis (10s); 0, forever
  --lease <time>        how long a crash keeps others waiting (30s)
  --fair                first come, first served: kind fair

${WHERE}
Exit codes: that of the command, 128 + n after signal n, 64 wrong call,
  69 Redis cannot be used, 75 the lock is busy, 126 the command cannot be run,
  127 it is not found`,
  'fencing-sql': `nestjs-distributed-lock fencing-sql --dialect <dialect> [options]

Prints the migration that makes the table of FencingTable. It needs no Redis.

  --dialect <dialect>   postgres, mysql (and MariaDB) or sqlite
  --table <name>        the name of the table (lock_fences)
  --as <form>           sql, typeorm or prisma (sql)

Exit codes: 0 done, 64 wrong call`,
  doctor: `nestjs-distributed-lock doctor [options]

Looks at each Redis server as the locks see it: whether all kinds can be taken,
versions, latency, clocks, eviction, persistence, replicas, and the rights that
the user lacks, for which use. Then at the deadlocks of the fleet, which takes
three seconds if callers wait. Each finding comes with its cure. It leaves no
key, but founds the quorum on nodes without a charter, as any service does.
Rights that are missing leave lines in ACL LOG.

  --json                { status, versions, nodes, findings }
  --timeout <time>      how long all of it may take (30s)

${WHERE}
Exit codes: 0 all is well, 1 warnings, 2 errors, 64 wrong call,
  69 no server answers`,
};
