import type { Amendment, Charter, Identity, Member, MemberStore } from '../quorum/member.js';
import type { Argument } from './commands/command.js';
import type { ServerConnection } from './connection/connection.js';
import { CHARTER_KEY, charterReply, onCharter } from './commands/charter.js';
import { CharterWithheld, isWithheld, translate } from './connection/redis-errors.js';
import { codeOf } from './commands/replies.js';
import * as scripts from './commands/script.js';
import { serverInfo } from './health/server-info.js';

const READING: Amendment = { id: '', size: 0, longest: 0, allowed: 0 };

/** A Redis server, or a Sentinel deployment, as one member of a quorum. */
export class RedisMember implements Member {
  constructor(
    readonly store: MemberStore,
    readonly deployment: ServerConnection,
  ) {}

  get node(): string {
    return this.deployment.node;
  }

  get generation(): number {
    return this.deployment.generationOf();
  }

  get isDown(): boolean {
    return this.deployment.isDown;
  }

  outage(name: string): Error {
    return translate(this.deployment.outage(), name);
  }

  async identify(): Promise<Identity> {
    const [{ runId }, { time, charter }] = await Promise.all([
      serverInfo(this.deployment).catch(unlessWithheld),
      this.charter(READING),
    ]);
    // Some managed services hide it behind zeros.
    return { runId: /^0*$/.test(runId ?? '') ? undefined : runId, time, charter };
  }

  async amend(amendment: Amendment): Promise<Charter | undefined> {
    return (await this.charter(amendment)).charter;
  }

  async propose(id: string, run: string, proposal: string): Promise<boolean> {
    return codeOf(await this.run(scripts.charterPropose, [id, run, proposal]), 0, 1) === 1;
  }

  async witness(run: string): Promise<number> {
    return codeOf(await this.run(scripts.charterWitness, [run, 0]), 0, Infinity);
  }

  async forget(run: string): Promise<void> {
    await this.run(scripts.charterWitness, [run, 1]);
  }

  private async charter(amendment: Amendment) {
    const { id, size, longest, allowed, names = '', run, quarantined, proposal = '' } = amendment;
    const field = run !== undefined ? 'run' : quarantined !== undefined ? 'quarantined' : '';
    const numbers = [size, Math.ceil(longest), Math.floor(allowed)];
    const args = [id, ...numbers, names, field, run ?? quarantined ?? '', proposal];
    return charterReply(await this.run(scripts.charter, args));
  }

  private async run(script: scripts.Script, args: readonly Argument[]): Promise<unknown> {
    try {
      return await onCharter(this.deployment, script, args);
    } catch (error) {
      throw isWithheld(error)
        ? translate(new CharterWithheld(this.node, CHARTER_KEY, error), undefined)
        : error;
    }
  }
}

/** A server that refuses INFO does not tell its run. */
function unlessWithheld(error: unknown): { runId: undefined } {
  if (isWithheld(error)) return { runId: undefined };
  throw error;
}
