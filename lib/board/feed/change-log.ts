import type { BoardChange } from '../view/wire.js';
import type { Change } from './difference.js';

/** How many changes are kept. */
const MOST = 200;
/** How long the text of one may be: a message of a server may be long. */
const LONGEST = 500;

/** The last changes, the newest last. */
export class ChangeLog {
  private readonly kept: BoardChange[] = [];
  private lastId = 0;

  get all(): readonly BoardChange[] {
    return this.kept;
  }

  /** The number of the newest. */
  get last(): number {
    return this.lastId;
  }

  add(change: Change): void {
    const text = change.text.length > LONGEST ? `${change.text.slice(0, LONGEST)}…` : change.text;
    this.kept.push({ ...change, text, id: ++this.lastId });
    if (this.kept.length > MOST) this.kept.shift();
  }

  /** Those after the one with this number. */
  since(id: number): readonly BoardChange[] {
    return this.kept.filter((change) => change.id > id);
  }
}
