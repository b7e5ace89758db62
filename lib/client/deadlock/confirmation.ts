import type { SeenWait } from './look.js';
import type { Deadlock } from './wait-graph.js';

/**
 * Proves that all members of a deadlock over several processes waited at one moment. One look cannot prove it: it reads
 * the members one after the other, and a note may be old, because it stays after its wait has ended or arrives late.
 *
 * Proof: a process sends its next note only after the one before has arrived. So the process sent the note that the
 * fourth look reads after its third note had arrived, hence after the second look read that member, hence after the
 * first look ended. A wait that began before the first look and is still in the fourth note therefore lasted through
 * the end of the first look. This holds for every member, so at the end of the first look all of them waited for each
 * other, and each still did when it sent its last note.
 *
 * A look does not count if it gets no answer or an outdated note (a store may have several copies of a note).
 */
export class Confirmation {
  /** Number of looks in a row that prove a deadlock. */
  static readonly LOOKS = 4;

  private members = '';
  private stamps = new Map<string, number>();
  looks = 0;

  /** Counts a look only if it shows the same deadlock as the look before, with a new note of every other process. */
  count(deadlock: Deadlock<SeenWait> | undefined): void {
    if (deadlock === undefined) {
      this.looks = 0;
      return;
    }
    const { cycle, evidence } = deadlock;
    const members = JSON.stringify([cycle.map(({ id }) => id), evidence.map(({ id }) => id).sort()]);
    const stamps = new Map<string, number>();
    for (const { note } of evidence) if (note !== undefined) stamps.set(note.client, note.stamp);
    if (members !== this.members || this.looks === 0) this.looks = 1;
    else if ([...stamps].every(([client, stamp]) => stamp > (this.stamps.get(client) ?? Infinity)))
      this.looks++;
    else return;
    this.members = members;
    this.stamps = stamps;
  }
}
