import { type Attempt, type History, holdsOf, lagWithin, type Violation } from '../history.js';

/** ms by which readings of one clock may differ that were taken one after the other. */
const READING = 1;

/** How much of a lease is not promised, as the design says. */
const promised = (leaseTime: number) => leaseTime * 0.99 - 2;

/**
 * (b) Nobody who asks whether it holds is told so after its deadline, and no deadline promises more than the lease:
 * not from the moment that the holder looks, and for a lease that is not renewed not from its grant.
 */
export function writes({ attempts, processes }: History): Violation[] {
  const violations: Violation[] = [];
  for (const hold of holdsOf(attempts)) {
    const say = (at: number, what: string) =>
      violations.push({
        checker: 'writes',
        at,
        message: `${hold.lock}: ${hold.process}#${String(hold.op)} ${what}`,
      });
    const { granted, lost = Infinity, releaseFrom = Infinity, deadlines } = hold;
    const [first] = deadlines;
    if (
      first !== undefined &&
      first.until <= granted &&
      lagWithin(processes.get(hold.process), granted - 100, granted + 100) === 0
    )
      say(granted, 'was granted a lease that was over');
    for (const { before } of hold.writes) {
      const known = deadlines.filter(({ at }) => at >= before);
      if (before > lost) say(before, `wrote ${(before - lost).toFixed(1)} ms after it was told of the loss`);
      if (before > releaseFrom) say(before, 'wrote after its release');
      if (known.length > 0 && known.every(({ until }) => until < before - READING))
        say(before, 'wrote after its deadline');
    }
    for (const { at, until } of deadlines) {
      const excess = until - latestDeadline(hold, at);
      if (excess > READING) say(at, `was promised ${excess.toFixed(1)} ms more than its lease`);
    }
  }
  return violations;
}

function latestDeadline(
  { invoked, granted, leaseTime, renewed, extensions, outer, call }: Attempt,
  at: number,
): number {
  const asked = extensions.filter(({ from }) => from <= at).map((extension) => extension.leaseTime);
  const fromNow = at + promised(Math.max(leaseTime, ...asked));
  // Whoever enters again has the outer lease, which may have been extended.
  if (outer !== undefined || call === 'nested') return Infinity;
  const fixed = !renewed && asked.length === 0;
  return fixed ? Math.min(fromNow, (granted ?? invoked) + promised(leaseTime)) : fromNow;
}
