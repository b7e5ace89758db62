import { afterInput } from './runtime.js';

/** Entries of one portion. It takes some milliseconds, and few processes have so many leases. */
const PORTION = 5_000;

/** Divides entries, of which there may be 300,000. The entries may be changed while a portion is in use. */
export function* portionsOf<T>(entries: Iterable<T>): Generator<readonly T[]> {
  let portion: T[] = [];
  for (const entry of entries) {
    if (portion.push(entry) < PORTION) continue;
    yield portion;
    portion = [];
  }
  yield portion;
}

/** Lets the event loop turn after a full portion, so that other work does not wait for all. */
export const afterPortion = (portion: readonly unknown[]): Promise<void> | undefined =>
  portion.length < PORTION ? undefined : new Promise(afterInput);
