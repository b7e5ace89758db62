import { type Fault, InTheWay } from '../faults/fault.js';

/** Lets one of the faults strike at a time: a deployment that changes its masters cannot change them once more. */
export function oneAtATime(faults: readonly Fault[]): Fault[] {
  let struck = false;
  return faults.map((fault) => ({
    ...fault,
    strike: async (strike) => {
      if (struck) throw new InTheWay();
      struck = true;
      const heal = await fault.strike(strike);
      return async () => {
        await heal();
        struck = false;
      };
    },
  }));
}
