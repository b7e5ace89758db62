import type { Fault } from './faults/fault.js';
import type { Random } from './random.js';

/** One strike, ms from the beginning of the round. */
export interface Planned {
  readonly at: number;
  readonly lasts: number;
  readonly fault: Fault;
  /** Decides whom it strikes and how. */
  readonly random: Random;
}

/**
 * A seeded mix. Most rounds have several faults at a time; a step of the server's clock stays apart from what keeps a
 * holder from giving back its lock, because that lasts as long as the clock says, and from other losses of data, because
 * then the fence is gone that makes up for a clock that went back.
 */
export function mixOf(
  faults: readonly Fault[],
  random: Random,
  duration: number,
  strikes: number,
): Planned[] {
  const clock = random.next() < 0.2;
  const eligible = faults.filter(({ apart, severity }) =>
    clock ? apart === 'clock' || apart === 'pause' || severity === 'harmless' : apart !== 'clock',
  );
  const steps = eligible.filter(({ apart }) => apart === 'clock');
  const others = byGroup(eligible.filter(({ apart }) => apart !== 'clock'));
  return Array.from({ length: strikes }, () => {
    const stepped = steps.length > 0 && random.next() < 0.4;
    return plan(random.pick(stepped ? steps : random.pick(others)), random, duration);
  }).sort((a, b) => a.at - b.at);
}

/** Every group gets its share, however many faults it has. */
function byGroup(faults: readonly Fault[]): Fault[][] {
  const groups = new Map<string, Fault[]>();
  for (const fault of faults) groups.set(fault.group, [...(groups.get(fault.group) ?? []), fault]);
  return [...groups.values()];
}

/** One fault again and again. */
export const aloneOf = (fault: Fault, random: Random, duration: number, strikes: number): Planned[] =>
  Array.from({ length: strikes }, (_, index) => ({
    ...plan(fault, random, duration),
    at: (duration * index) / strikes,
  }));

const plan = (fault: Fault, random: Random, duration: number): Planned => ({
  at: random.next() * duration,
  lasts: random.between(...fault.lasts),
  fault,
  random: random.fork(),
});
