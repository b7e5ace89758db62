import { contenderOf } from '../contenders.mjs';

/** A line for each measurement that ended in an error. A run with one of them is not published. */
export const failuresOf = ({ results }) =>
  Object.entries(results).flatMap(([scenario, { failed = {} }]) =>
    Object.entries(failed).map(([id, message]) => `${scenario}, ${contenderOf(id).title}: ${message}`),
  );
