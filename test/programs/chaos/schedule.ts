import type { Fault } from './faults/fault.js';
import type { Random } from './random.js';
import { type Group, isEverywhere } from './strikes.js';

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
  const steps = faults.filter(({ apart }) => apart === 'clock');
  const clock = steps.length > 0 && random.next() < 0.3;
  const others = faults.filter(({ apart, severity }) =>
    clock ? apart === 'pause' || severity === 'harmless' : apart !== 'clock',
  );
  return Array.from({ length: strikes }, () => {
    const stepped = clock && random.next() < 0.5;
    return plan(stepped ? random.pick(steps) : oneOf(others, random), random, duration);
  }).sort((a, b) => a.at - b.at);
}

/**
 * Any of them. Most strikes are of what not every deployment has, for the rest strikes in every round; among either every
 * group gets its share, however many faults it has.
 */
export function oneOf(faults: readonly Fault[], random: Random): Fault {
  const own = faults.filter(({ group }) => !isEverywhere(group));
  const rest = faults.filter(({ group }) => isEverywhere(group));
  const some = rest.length === 0 || (own.length > 0 && random.next() < 0.6) ? own : rest;
  const groups = new Map<Group, Fault[]>();
  for (const fault of some) groups.set(fault.group, [...(groups.get(fault.group) ?? []), fault]);
  return random.pick(random.pick([...groups.values()]));
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
