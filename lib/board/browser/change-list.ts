import { changeItem } from '../view/panels.js';
import type { BoardChange } from '../view/wire.js';
import { make, one } from './elements.js';

/** The last changes, the newest first. */
export class ChangeList {
  private newest = 0;
  private readonly list = one('.changes');

  /** From the beginning: another process may tell them now, with numbers of its own. */
  reset(changes: readonly BoardChange[]): void {
    this.list.replaceChildren();
    this.newest = 0;
    this.show(changes);
  }

  show(changes: readonly BoardChange[]): void {
    const fresh = changes.filter(({ id }) => id > this.newest);
    const last = fresh.at(-1);
    if (last === undefined) return;
    this.newest = last.id;
    this.list.prepend(...fresh.reverse().map((change) => make(changeItem(change))));
    while (this.list.children.length > 200) this.list.lastElementChild?.remove();
  }
}
