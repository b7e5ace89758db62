import { now } from '../../lock.clock.js';
import type { Turn } from '../lock-store.js';
import { SweptMap } from './swept-map.js';

/** How long a lock stays reserved after it has been found free, ms. */
const GRACE = 250;

interface Reservation {
  readonly asker: string;
  /** Since when the asker has been refused. */
  readonly since: number;
  expiresAt: number;
}

/** What askers for several locks have reserved, by the rules of acquire-all.lua. */
export class MemoryTurns {
  private readonly reservations = new SweptMap<Reservation>(({ expiresAt }) => expiresAt <= now());

  /** Of each name whether an asker that has been refused for longer has reserved it. */
  ofElders(names: readonly string[], turn: Turn | undefined): readonly boolean[] {
    const found = names.map((name) => this.find(name));
    const since = this.sinceOf(names, turn);
    return found.map((reservation) => {
      if (reservation === undefined || reservation.asker === turn?.asker) return false;
      if (turn?.refusedFor === undefined) return true;
      // A strict order: of two, one is the elder for both.
      return reservation.since < since || (reservation.since === since && reservation.asker < turn.asker);
    });
  }

  /** @returns ms until a lock that is free may be taken by others than the one that has reserved it */
  freeIn(name: string): number {
    const reservation = this.reservations.get(name);
    if (reservation === undefined) return 0;
    const found = now();
    reservation.expiresAt = Math.min(reservation.expiresAt, found + GRACE);
    // The sum and the difference of two times may be off by a rounding.
    return Math.min(GRACE, Math.max(0, reservation.expiresAt - found));
  }

  /**
   * @param names of the request
   * @param heldFor ms: as long as it is held, a reservation keeps it from nobody
   */
  reserve(name: string, names: readonly string[], turn: Turn, heldFor: number): void {
    if (turn.refusedFor === undefined) return;
    const since = this.sinceOf(names, turn);
    this.reservations.set(name, { asker: turn.asker, since, expiresAt: now() + heldFor + GRACE });
  }

  leave(names: readonly string[], asker: string): void {
    for (const name of names) {
      if (this.reservations.get(name)?.asker === asker) this.reservations.delete(name);
    }
  }

  /** As its first reservation says. Counted anew, two of one age could each be the elder in turn. */
  private sinceOf(names: readonly string[], turn: Turn | undefined): number {
    for (const name of names) {
      const reservation = this.find(name);
      if (reservation !== undefined && reservation.asker === turn?.asker) return reservation.since;
    }
    return now() - (turn?.refusedFor ?? 0);
  }

  private find(name: string): Reservation | undefined {
    const reservation = this.reservations.get(name);
    if (reservation === undefined || reservation.expiresAt > now()) return reservation;
    this.reservations.delete(name);
    return undefined;
  }
}
