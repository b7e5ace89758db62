import type { Change, Member, MemberStore, Report } from '../quorum/member.js';
import type { ServerConnection } from './connection/connection.js';
import { CHARTER_KEY, charterArguments, charterReply, onCharter } from './commands/charter.js';
import { CharterWithheld, isWithheld, translate } from './connection/redis-errors.js';
import { serverInfo } from './health/server-info.js';

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

  async run(): Promise<string | undefined> {
    const { runId } = await serverInfo(this.deployment);
    // Some managed services hide it behind zeros.
    return /^0*$/.test(runId ?? '') ? undefined : runId;
  }

  async charter(change?: Change): Promise<Report> {
    try {
      return charterReply(await onCharter(this.deployment, charterArguments(change)));
    } catch (error) {
      throw isWithheld(error)
        ? translate(new CharterWithheld(this.node, CHARTER_KEY, error), undefined)
        : error;
    }
  }
}
