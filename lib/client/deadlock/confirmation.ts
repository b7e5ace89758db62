import type { SeenWait } from './look.js';
import type { Deadlock } from './wait-graph.js';

/**
 * Whether a deadlock over several processes has been one at a single moment. Each look reads the members one after the other,
 * and what it reads may be old: a note may stay when its wait has ended, or arrive late.
 *
 * A process writes its next note when the one before it has arrived. A note of the fourth look has been sent after the
 * third note had arrived, so after the second look had read that member, so after the first look had ended. A wait that
 * began before the first look and is told of in the fourth has gone on through the end of the first look. That holds for each
 * member, so at that moment all of them waited for each other, and each still did when it sent its last note. A store that has several
 * copies of a note, or a note that comes late, only makes a look that does not count. So does a look that
 * gets no answer.
 */
export class Confirmation {
  /** Confirmed by so many looks. */
  static readonly LOOKS = 4;

  private members = '';
  private stamps = new Map<string, number>();
  looks = 0;

  /** Counts a look that shows the same as the one before it, and only news of all other processes. */
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
