/** The label of all locks by which work runs once in a period. */
export const ONCE = 'once';

/**
 * What a lock counts as in the order of locks. A label that the caller has not chosen tells nothing of the order: such locks,
 * and those without a label, count by their names.
 */
export const orderGroup = (name: string, label: string | undefined): string =>
  label === undefined || label === ONCE ? name : label;
