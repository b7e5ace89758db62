import { leaseState } from '../view/bar.js';
import { ageText, classOf, leaseText, lockRow, timesOf, waitText } from '../view/lock-row.js';
import { ageShare } from '../view/times.js';
import type { BoardLock } from '../view/wire.js';
import { make, one, setText } from './elements.js';

/** The row of one lock. */
export class Row {
  readonly element: Element;
  readonly link: HTMLElement;
  private parts: Parts;

  constructor(
    public lock: BoardLock,
    private readonly href: string,
    at: number,
  ) {
    this.element = this.make(at);
    this.link = one('a', this.element);
    this.link.tabIndex = -1;
    this.parts = partsOf(this.element);
  }

  /** Shows the lock as it is now. The link stays: it may have the focus. */
  update(at: number): void {
    const isOpen = this.element.classList.contains('is-open');
    const fresh = this.make(at);
    fresh.firstElementChild?.remove();
    while (this.element.children.length > 1) this.element.lastElementChild?.remove();
    this.element.append(...fresh.children);
    this.element.className = classOf(this.lock);
    this.element.classList.toggle('is-open', isOpen);
    this.parts = partsOf(this.element);
  }

  /** Moves the times and the bars on. */
  tick(at: number): void {
    const { age, ageBar, lease, leaseBar, wait } = this.parts;
    const isHeld = this.lock.holders.length > 0;
    const times = timesOf(this.lock, at);
    if (age !== null) setText(age, ageText(times, isHeld));
    if (lease !== null) setText(lease, leaseText(times, isHeld));
    if (wait !== null) setText(wait, waitText(times));
    ageBar?.setAttribute('width', ageShare(times.age ?? 0).toFixed(1));
    leaseBar?.setAttribute('width', times.leftShare.toFixed(1));
    leaseBar?.parentElement?.setAttribute('class', `bar of-lease ${leaseState(times.leftShare)}`);
  }

  private make(at: number): Element {
    return make(lockRow(this.lock, at, this.href));
  }
}

type Parts = Readonly<Record<'age' | 'ageBar' | 'lease' | 'leaseBar' | 'wait', Element | null>>;

const partsOf = (row: Element): Parts => ({
  age: row.querySelector('.age time'),
  ageBar: row.querySelector('.age .part'),
  lease: row.querySelector('.lease time'),
  leaseBar: row.querySelector('.lease .part'),
  wait: row.querySelector('.waiting time'),
});
