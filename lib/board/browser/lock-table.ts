import { onOneLine } from '../../runtime/text.js';
import { tableHead, type SortKey } from '../view/columns.js';
import { queryOf } from '../view/links.js';
import { inOrder } from '../view/order.js';
import { isUnseen } from '../view/panels.js';
import { h } from '../view/tree.js';
import type { BoardLock } from '../view/wire.js';
import { serverTime } from './clock.js';
import { byId, make, one, setText } from './elements.js';
import type { Model } from './model.js';
import { Row } from './row.js';
import { staying } from './staying.js';

/** How many rows are added when the end of the table comes into view: rows out of view are not made. */
const STEP = 100;
/** How many rows are added at once on the way to the last one: many more keep a browser busy for seconds. */
const LEAP = 500;
/** How many rows out of sight are changed at once. */
const PART = 50;

/** The locks as rows: those that are wanted, in the wanted order. */
export class LockTable {
  query = '';
  filter = 'all';
  private sort: SortKey = 'age';
  private isReversed = false;
  private shown = STEP;
  /** The wanted rows, also beyond the shown ones. */
  private wanted: readonly BoardLock[] = [];
  private readonly rows = new Map<string, Row>();
  private readonly byElement = new WeakMap<Element, Row>();
  private readonly visible = new Set<Row>();
  /** Rows out of sight that show their lock as it was. */
  private readonly stale = new Set<Row>();
  private freshening = 0;
  private leaping = 0;
  private readonly body = one('tbody');
  private readonly foot = byId('foot');
  private active: Row | undefined;
  private opened: string | undefined;
  private readonly watcher = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        const row = this.byElement.get(target);
        if (row === undefined) continue;
        if (isIntersecting) {
          this.visible.add(row);
          if (this.stale.delete(row)) row.update(serverTime());
          else row.tick(serverTime());
        } else this.visible.delete(row);
      }
    },
    { rootMargin: '200px' },
  );
  private readonly endWatcher = new IntersectionObserver(
    (entries) => {
      if (entries.at(-1)?.isIntersecting !== true || this.shown >= this.wanted.length) return;
      this.shown += STEP;
      this.render();
    },
    { rootMargin: '600px' },
  );

  constructor(
    private readonly model: Model,
    private readonly onOpen: (name: string) => void,
  ) {
    this.showHead();
    this.body.addEventListener('click', (event) => {
      const row = this.rowOf(event.target);
      if (row === undefined || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.activate(row);
      this.onOpen(row.lock.name);
    });
    this.body.addEventListener('focusin', (event) => {
      const row = this.rowOf(event.target);
      if (row !== undefined) this.activate(row);
    });
  }

  /** Shows the present model; before there is one, the content that the page came with. */
  render(): void {
    if (this.model.rest === undefined) return;
    if (this.rows.size === 0) this.body.replaceChildren();
    const at = serverTime();
    this.wanted = inOrder(
      [...this.model.locks.values()].filter((lock) => this.isWanted(lock)),
      this.sort,
      this.isReversed,
    );
    const rows = this.wanted.slice(0, this.shown).map((lock) => this.rowFor(lock, at));
    const kept = new Set(rows);
    for (const row of this.rows.values()) if (!kept.has(row)) this.drop(row);
    const focused = document.activeElement;
    this.arrange(rows);
    if (focused instanceof HTMLElement && focused !== document.activeElement && this.body.contains(focused))
      focused.focus({ preventScroll: true });
    if (this.active === undefined) this.activate(this.rowOf(this.body.firstElementChild));
    this.tellCount();
    this.watchEnd();
    this.freshen();
  }

  tick(): void {
    const at = serverTime();
    for (const row of this.visible) row.tick(at);
  }

  search(query: string): void {
    this.query = query.trim().toLowerCase();
    this.again();
  }

  show(filter: string): void {
    this.filter = filter;
    this.again();
  }

  /** Marks the row of the lock that is looked at. */
  mark(name: string | undefined): void {
    this.opened = name;
    for (const [lock, row] of this.rows) row.element.classList.toggle('is-open', lock === name);
  }

  focus(): void {
    this.active?.link.focus();
  }

  /** Moves the focus by so many rows. Infinity is the last lock, which may take several leaps; a move before that ends them. */
  move(by: number): void {
    clearTimeout(this.leaping);
    if (by === Infinity && this.shown < this.wanted.length) {
      this.shown = Math.min(this.wanted.length, this.shown + LEAP);
      this.render();
    }
    const elements = [...this.body.children];
    const at = this.active === undefined ? -1 : elements.indexOf(this.active.element);
    const target = elements[Math.min(elements.length - 1, Math.max(0, at + by))];
    const reached = this.rowOf(target)?.link;
    reached?.focus();
    if (by !== Infinity || this.shown >= this.wanted.length) return;
    this.leaping = window.setTimeout(() => {
      if (document.activeElement === reached) this.move(Infinity);
    });
  }

  private isWanted({ name, holders, waiting }: BoardLock): boolean {
    if (this.filter === 'held' && holders.length === 0) return false;
    if (this.filter === 'waited' && waiting === 0) return false;
    const { query } = this;
    if (query === '') return true;
    // As it is, or as the page shows it.
    const isFound = (text: string) =>
      [text, onOneLine(text)].some((each) => each.toLowerCase().includes(query));
    return isFound(name) || holders.some(({ label }) => isFound(label));
  }

  /** Moves as few rows as possible: each makes the browser work, and there may be thousands. */
  private arrange(rows: readonly Row[]): void {
    const positions = new Map([...this.body.children].map((element, index) => [element, index]));
    const stays = staying(rows.map(({ element }) => positions.get(element)));
    const moved: Element[] = [];
    rows.forEach(({ element }, index) => {
      if (stays.has(index)) element.before(...moved.splice(0));
      else moved.push(element);
    });
    this.body.append(...moved);
  }

  private rowFor(lock: BoardLock, at: number): Row {
    const known = this.rows.get(lock.name);
    if (known !== undefined) {
      if (known.lock === lock) return known;
      known.lock = lock;
      if (this.visible.has(known)) known.update(at);
      else this.stale.add(known);
      return known;
    }
    const { instance = '', instances = [] } = this.model.rest ?? {};
    const row = new Row(lock, queryOf(instance, instances, lock.name), at);
    row.element.classList.toggle('is-open', lock.name === this.opened);
    this.rows.set(lock.name, row);
    this.byElement.set(row.element, row);
    this.watcher.observe(row.element);
    return row;
  }

  /** An observer reports changes only, and the end may still be in view: it is observed anew. */
  private watchEnd(): void {
    this.endWatcher.unobserve(this.foot);
    if (this.shown < this.wanted.length) this.endWatcher.observe(this.foot);
  }

  /** Rows that are out of sight follow in parts, so that a change of all rows keeps the page busy for a moment only. */
  private freshen(): void {
    clearTimeout(this.freshening);
    if (this.stale.size === 0) return;
    this.freshening = window.setTimeout(() => {
      const at = serverTime();
      for (const row of [...this.stale].slice(0, PART)) {
        row.update(at);
        this.stale.delete(row);
      }
      this.freshen();
    });
  }

  private drop(row: Row): void {
    this.stale.delete(row);
    this.rows.delete(row.lock.name);
    this.visible.delete(row);
    this.watcher.unobserve(row.element);
    if (row === this.active) {
      const hadFocus = document.activeElement === row.link;
      const near = row.element.nextElementSibling ?? row.element.previousElementSibling;
      this.active = undefined;
      this.activate(this.rowOf(near));
      if (hadFocus) this.focus();
    }
    row.element.remove();
  }

  /** One row can be reached by Tab, the others by arrows. */
  private activate(row: Row | undefined): void {
    if (row === undefined || row === this.active) return;
    if (this.active !== undefined) this.active.link.tabIndex = -1;
    this.active = row;
    row.link.tabIndex = 0;
  }

  private rowOf(target: EventTarget | null | undefined): Row | undefined {
    const element = target instanceof Element ? target.closest('tr') : null;
    return element === null ? undefined : this.byElement.get(element);
  }

  private again(): void {
    this.shown = STEP;
    this.render();
  }

  private showHead(): void {
    const head = tableHead(this.sort, this.isReversed, (title, sort) =>
      h('button', { type: 'button', class: 'sort', 'data-sort': sort }, title),
    );
    const built = make(head);
    document.querySelector('thead')?.replaceWith(built);
    built.addEventListener('click', ({ target }) => {
      const sort = target instanceof HTMLElement ? (target.dataset.sort as SortKey | undefined) : undefined;
      if (sort === undefined) return;
      this.isReversed = sort === this.sort && !this.isReversed;
      this.sort = sort;
      this.showHead();
      document.querySelector<HTMLElement>(`[data-sort="${sort}"]`)?.focus();
      this.again();
    });
  }

  private tellCount(): void {
    const { size } = this.model.locks;
    const more = this.model.rest?.more === true;
    const all = `${size.toLocaleString('en')}${more ? '+' : ''}`;
    const { length } = this.wanted;
    const unit = size === 1 && !more ? 'lock' : 'locks';
    setText(byId('count'), length === size ? `${all} ${unit}` : `${String(length)} of ${all} ${unit}`);
    setText(this.foot, this.footText(more));
  }

  private footText(more: boolean): string {
    const { size } = this.model.locks;
    if (isUnseen(this.model.rest?.problem ?? null)) return 'Not known yet.';
    if (size === 0) return 'No lock is held or waited for.';
    if (this.wanted.length === 0) return 'No lock is like that.';
    if (this.shown < this.wanted.length) return `… ${String(this.wanted.length - this.shown)} more`;
    return more ? `There are more than the ${String(size)} locks that are shown.` : '';
  }
}
