/** Fits one screen of 80 columns and 24 lines, as each of the following does. */
export const HELP = `nestjs-distributed-lock <command> [options]

  ls [prefix]           the locks that are held or waited for
  show <name>           one lock: holders, fencing token, queue
  doctor                what can cost a lock here, each with its cure

Where the locks are (one of the first four, or REDIS_URL):
  --url <url>           redis://, rediss:// or unix:///path/of/redis.sock
  --cluster <hosts>     host:port,host:port
  --sentinel <hosts>    host:port,host:port, with --master <name>
  --nodes <urls>        Redlock: three or more URLs with commas between
  --prefix <text>       the keyPrefix of the application (lock:)
A password comes with a URL, or as REDIS_USERNAME, REDIS_PASSWORD.

  --json                for scripts
  --timeout <time>      how long to wait for Redis (5s)
  <command> --help      all options of a command; --version
Exit codes: 0 done, 1 no such lock, warnings, 2 errors, 64 wrong call,
  65 another kind, 69 Redis cannot be used`;

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

Tells all that Redis knows of one lock: holders, fencing token, when it ends by
itself, and its queue in order.

  --json                one object, or null; times in ms, moments as ISO 8601
  --timeout <time>      how long to wait for Redis (5s)

${WHERE}
Exit codes: 0 held, 1 no such lock is held, 64 wrong call,
  65 what stands under the name is no lock, 69 Redis cannot be used`,
  doctor: `nestjs-distributed-lock doctor [options]

Looks at each Redis server as the locks see it: whether all kinds can be taken,
versions, latency, clocks, eviction, persistence, replicas, and the rights that
the user lacks, for which use. Then at the deadlocks of the fleet, which takes
three seconds where locks are waited for. What is found comes with its cure. It
leaves no key. Rights that are missing leave lines in ACL LOG.

  --json                { status, versions, nodes, findings }
  --timeout <time>      how long all of it may take (30s)

${WHERE}
Exit codes: 0 all is well, 1 warnings, 2 errors, 64 wrong call,
  69 no server answers`,
};
