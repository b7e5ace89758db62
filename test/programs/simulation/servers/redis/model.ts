import type { Command, Session, Surroundings } from './command.js';
import { hashes } from './commands/hashes.js';
import { keys } from './commands/keys.js';
import { messages } from './commands/messages.js';
import { scripting } from './commands/scripting.js';
import { server } from './commands/server.js';
import { sortedSets } from './commands/sorted-sets.js';
import { strings } from './commands/strings.js';
import { Database } from './database.js';
import type { Lua } from './lua.js';
import { Messages } from './messages.js';
import { Refusal, type Reply, wrongCount } from './replies.js';
import { Scripts } from './scripts.js';

const COMMANDS: ReadonlyMap<string, Command> = new Map(
  [strings, keys, hashes, sortedSets, messages, scripting, server].flatMap((group) => Object.entries(group)),
);

export interface ModelOptions {
  /** Microseconds of the wall clock. */
  readonly micros: () => number;
  readonly runId: string;
  /** s since the start. */
  readonly uptime: () => number;
  /** How many replicas have all that has been written. */
  readonly replicas: () => number;
}

/** What a server of Redis 7.0 answers, as far as clients and scripts of locks ask it. */
export class RedisModel implements Surroundings {
  readonly micros: () => number;
  readonly runId: string;
  readonly uptime: () => number;
  readonly replicas: () => number;
  readonly messages = new Messages();
  readonly scripts: Scripts;
  /** Commands that have been carried out, without those of scripts. */
  readonly counts = new Map<string, number>();
  full = false;
  /** The script that runs has changed something, and may go on even if the memory is full. */
  private wrote = false;
  database = new Database(() => this.now());

  constructor(lua: Lua, { micros, runId, uptime, replicas }: ModelOptions) {
    this.micros = micros;
    this.runId = runId;
    this.uptime = uptime;
    this.replicas = replicas;
    this.scripts = new Scripts(lua);
  }

  now(): number {
    return Math.floor(this.micros() / 1_000);
  }

  /** What a client gets. */
  execute(command: readonly string[], session: Session): Reply {
    const name = command[0]?.toUpperCase() ?? '';
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
    this.wrote = false;
    return this.call(command, session, false);
  }

  call([name = '', ...args]: readonly string[], session: Session, inScript: boolean): Reply {
    const command = COMMANDS.get(name) ?? COMMANDS.get(name.toUpperCase());
    if (command === undefined) return inScript ? UNKNOWN_IN_SCRIPT() : unknown(name, args);
    const [least, most] = command.counts;
    if (args.length < least || args.length > most)
      return inScript
        ? new Refusal('ERR Wrong number of args calling Redis command from script')
        : wrongCount(name.toLowerCase());
    if (inScript && command.notInScripts === true)
      return new Refusal('ERR This Redis command is not allowed from script');
    if (command.writes === 'more' && this.full && !(inScript && this.wrote))
      return new Refusal("OOM command not allowed when used memory > 'maxmemory'.");
    this.wrote ||= command.writes !== undefined;
    try {
      return command.run(this, args, session);
    } catch (error) {
      if (error instanceof Refusal) return error;
      throw error;
    }
  }
}

const UNKNOWN_IN_SCRIPT = () => new Refusal('ERR Unknown Redis command called from script');

function unknown(name: string, args: readonly string[]): Refusal {
  const shown = args.map((text) => `'${text}' `).join('');
  return new Refusal(`ERR unknown command '${name}', with args beginning with: ${shown}`);
}
