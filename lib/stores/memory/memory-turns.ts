import { SweptMap } from './swept-map.js';

/** Who comes next among those who want several locks at once. */
export class MemoryTurns {
  private readonly reservations = new SweptMap<{ asker: string; expiresAt: number }>(
    ({ expiresAt }) => expiresAt <= performance.now(),
  );

  /** What keeps `asker` from taking it; undefined when nothing does. */
  reservation(
    name: string,
    asker: string | undefined,
  ): { name: string; retryAfter: number; holder: string } | undefined {
    const reservation = this.reservations.get(name);
    if (reservation === undefined || reservation.asker === asker) return undefined;
    const retryAfter = reservation.expiresAt - performance.now();
    if (retryAfter > 0) return { name, retryAfter, holder: reservation.asker };
    this.reservations.delete(name);
    return undefined;
  }

  reserve(names: readonly string[], { asker, reserveFor }: { asker: string; reserveFor: number }): void {
    if (reserveFor === 0) return;
    const expiresAt = performance.now() + reserveFor;
    for (const name of names) this.reservations.set(name, { asker, expiresAt });
  }

  clear(names: readonly string[]): void {
    for (const name of names) this.reservations.delete(name);
  }
}
