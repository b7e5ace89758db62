import type { Attempt } from '../chaos/history.js';
import type { CallId, Plan } from './plan.js';

/** Whether a plan still fails, and the calls that it made. */
export type Judge = (plan: Plan) => Promise<{ readonly fails: boolean; readonly calls: readonly CallId[] }>;

export const callsOf = (attempts: readonly Attempt[]): CallId[] => [
  ...new Set(attempts.map((attempt) => (attempt as Attempt & { id: CallId }).id)),
];

/**
 * Leaves out faults and calls, as long as the plan still fails without them (delta debugging). What is left need not be the
 * least possible, but nothing single can be left out where there was time enough to try it.
 * @param tries how many runs it may take
 */
export async function shrink(
  plan: Plan,
  calls: readonly CallId[],
  judge: Judge,
  tries: number,
): Promise<Plan> {
  let left = tries;
  let present = calls;
  const stillFails = async (candidate: Plan): Promise<boolean> => {
    if (left-- <= 0) return false;
    const { fails, calls: made } = await judge(candidate);
    if (fails) present = made;
    return fails;
  };
  let smallest = plan;
  const faults = await fewest(plan.faults, (some) => stillFails({ ...smallest, faults: some }));
  smallest = { ...smallest, faults };
  const wanted = await fewest(present, (some) => stillFails({ ...smallest, calls: new Set(some) }));
  smallest = wanted.length < present.length ? { ...smallest, calls: new Set(wanted) } : smallest;
  return { ...smallest, faults: await fewest(faults, (some) => stillFails({ ...smallest, faults: some })) };
}

/** The fewest of the items with which it still fails: halves are left out first, then ever smaller parts. */
export async function fewest<T>(
  items: readonly T[],
  fails: (items: readonly T[]) => Promise<boolean>,
): Promise<readonly T[]> {
  if (items.length > 0 && (await fails([]))) return [];
  let left = items;
  for (let parts = 2; left.length > 1;) {
    const size = Math.ceil(left.length / parts);
    let smaller: readonly T[] | undefined;
    for (let from = 0; from < left.length && smaller === undefined; from += size) {
      const without = [...left.slice(0, from), ...left.slice(from + size)];
      if (await fails(without)) smaller = without;
    }
    if (smaller !== undefined) {
      left = smaller;
      parts = Math.max(2, parts - 1);
    } else if (size === 1) {
      break;
    } else {
      parts = Math.min(left.length, parts * 2);
    }
  }
  return left;
}
