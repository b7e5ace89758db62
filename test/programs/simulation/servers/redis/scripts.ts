import type { Session, Surroundings } from './command.js';
import type { Compiled, Lua, Parts } from './lua.js';
import { Refusal, type Reply } from './replies.js';

/** The scripts that one server knows, until it is restarted or told to forget them. */
export class Scripts {
  private readonly known = new Map<string, Compiled>();

  constructor(private readonly lua: Lua) {}

  /** @throws Refusal */
  load(source: string): string {
    const compiled = this.lua.compile(source);
    this.known.set(compiled.digest, compiled);
    return compiled.digest;
  }

  knows(digest: string): boolean {
    return this.known.has(digest);
  }

  forget(): void {
    this.known.clear();
  }

  /** @throws Refusal */
  run(digest: string, parts: Parts, server: Surroundings, session: Session): Reply {
    const script = this.known.get(digest);
    if (script === undefined) throw new Refusal('NOSCRIPT No matching script. Please use EVAL.');
    return this.lua.run(script, parts, (command) => server.call(command, session, true));
  }
}
