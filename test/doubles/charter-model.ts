import type { Change, Charter, Report } from '../../lib/stores/quorum/member.js';

/** What charter.lua does on a server, for members without one. */
export class CharterModel {
  private charter: Charter | undefined;
  private readonly seen = new Map<string, number>();

  /** @param time the server's time of day, ms */
  constructor(private readonly time: () => number) {}

  amend(change?: Change): Report {
    if (change !== undefined) this.change(change);
    const time = this.time();
    const known = new Map([...this.seen].map(([run, at]) => [run, Math.max(0, Math.floor(time - at))]));
    return { time, charter: this.charter && { ...this.charter, known } };
  }

  private change({ id, size, longest, names, allowed, run, quarantined, claim, known = [] }: Change): void {
    if (this.charter === undefined && names !== undefined) {
      const none = { run: undefined, quarantined: undefined, claim: undefined };
      this.charter = { id, size, longest: 1, allowed: 0, names: [], known: this.seen, ...none };
    }
    const { charter } = this;
    if (charter?.id !== id) return;
    const isRaise = run === undefined && quarantined === undefined;
    this.charter = {
      ...charter,
      longest: Math.max(charter.longest, Math.ceil(longest)),
      allowed:
        allowed === undefined
          ? charter.allowed
          : Math.max(Math.floor(allowed), isRaise ? charter.allowed : 0),
      names: names === undefined || charter.names.includes(names) ? charter.names : [...charter.names, names],
      run: run ?? charter.run,
      quarantined: quarantined ?? charter.quarantined,
      claim: claim === undefined || charter.claim?.run === claim.run ? charter.claim : claim,
    };
    for (const each of known) if (!this.seen.has(each)) this.seen.set(each, this.time());
  }
}
