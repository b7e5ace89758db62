import type { Amendment, Charter } from '../../lib/stores/quorum/member.js';

const PROPOSAL_LIFE = 5_000;

/** What charter.lua, charter-propose.lua and charter-witness.lua do on a server, for members without one. */
export class CharterModel {
  charter: Charter | undefined;
  private proposed: { readonly text: string; readonly at: number } | undefined;
  private readonly seen = new Map<string, number>();

  /** @param time the server's time of day, ms */
  constructor(private readonly time: () => number) {}

  amend({ id, size, longest, allowed, names, run, quarantined, proposal }: Amendment): Charter | undefined {
    const isCurrent = proposal === undefined || this.proposed?.text === proposal;
    if (this.charter === undefined) {
      if (names === undefined || !isCurrent || this.isProposedOtherwise(`${id} `)) return undefined;
      this.charter = { id, size, longest, allowed, names: [], run: undefined, quarantined: undefined };
    }
    const { charter } = this;
    if (charter.id !== id || !isCurrent) return charter;
    this.charter = {
      ...charter,
      longest: Math.max(charter.longest, Math.ceil(longest)),
      allowed: Math.max(charter.allowed, Math.floor(allowed)),
      names: names === undefined || charter.names.includes(names) ? charter.names : [...charter.names, names],
      run: run ?? charter.run,
      quarantined: quarantined ?? charter.quarantined,
    };
    return this.charter;
  }

  propose(id: string, run: string, proposal: string): boolean {
    const { charter } = this;
    if (charter !== undefined && charter.id !== id) return false;
    if (charter !== undefined && [charter.run, charter.quarantined].includes(run)) return false;
    if (this.isProposedOtherwise(proposal)) return false;
    if (this.proposed?.text !== proposal) this.proposed = { text: proposal, at: this.time() };
    return true;
  }

  witness(run: string): number {
    const since = this.seen.get(run) ?? this.time();
    this.seen.set(run, since);
    return Math.max(0, Math.floor(this.time() - since));
  }

  forget(run: string): void {
    this.seen.delete(run);
  }

  private isProposedOtherwise(text: string): boolean {
    if (this.proposed === undefined || this.proposed.text.startsWith(text)) return false;
    return Math.abs(this.time() - this.proposed.at) < PROPOSAL_LIFE;
  }
}
