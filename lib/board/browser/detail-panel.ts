import { detailActions, detailBody, detailHead } from '../view/detail.js';
import { timeText } from '../view/times.js';
import { h } from '../view/tree.js';
import type { BoardDetail } from '../view/wire.js';
import { answerOf } from './answer.js';
import { serverTime } from './clock.js';
import { buildAll, byId, one, setText } from './elements.js';

/** How often the lock that is open is asked for, ms. */
const AGAIN = 1_000;

const isHidden = (): boolean => document.hidden;

/** The lock that is looked at. */
export class DetailPanel {
  name: string | undefined;
  private shown = '';
  private timer = 0;
  private readonly element = byId('detail');

  constructor(
    private readonly url: (name: string) => string,
    private readonly home: () => string,
    private readonly onChange: (name: string | undefined) => void,
    /** Undefined if viewers may only look. */
    private readonly onAction: ((action: 'ask' | 'force', name: string) => void) | undefined,
  ) {
    this.element.addEventListener('click', (event) => {
      if (!(event.target instanceof HTMLElement)) return;
      const { action } = event.target.dataset;
      if ((action === 'ask' || action === 'force') && this.name !== undefined)
        this.onAction?.(action, this.name);
      if (event.target.closest('.close') === null) return;
      event.preventDefault();
      this.close();
    });
    // A tab that is hidden costs the store nothing.
    document.addEventListener('visibilitychange', () => void this.look());
  }

  open(name: string): void {
    this.name = name;
    this.shown = '';
    this.element.replaceChildren(
      ...buildAll([
        detailHead(name, this.home()),
        h('p', { class: 'warning', role: 'status' }),
        h('div', { class: 'body' }),
        this.onAction !== undefined && detailActions(),
      ]),
    );
    this.element.hidden = false;
    this.element.focus({ preventScroll: true });
    this.onChange(name);
    void this.look();
  }

  close(): void {
    if (this.name === undefined) return;
    this.name = undefined;
    clearTimeout(this.timer);
    this.element.hidden = true;
    this.element.replaceChildren();
    this.onChange(undefined);
  }

  tick(): void {
    const at = serverTime();
    for (const time of this.element.querySelectorAll<HTMLElement>('time')) {
      const { since, until } = time.dataset;
      if (since !== undefined) setText(time, timeText(at - Number(since)));
      if (until !== undefined) setText(time, timeText(Number(until) - at));
    }
  }

  /** The lock may be another one now. */
  async look(): Promise<void> {
    const { name } = this;
    clearTimeout(this.timer);
    if (name === undefined || isHidden()) return;
    const headers = { Accept: 'application/json' };
    // If the server does not answer, the page says so.
    const response = await fetch(this.url(name), { headers }).catch(() => undefined);
    if (response !== undefined) {
      const answer = await answerOf<BoardDetail>(response).catch((error: unknown) => error as Error);
      if (this.name === name) this.show(answer);
    }
    if (this.name !== name || isHidden()) return;
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.look(), AGAIN);
  }

  private show(answer: BoardDetail | Error): void {
    const failure = answer instanceof Error ? `The lock cannot be read: ${answer.message}` : '';
    setText(one('.warning', this.element), failure);
    if (!(answer instanceof Error)) this.showDetail(answer);
  }

  private showDetail(detail: BoardDetail): void {
    const body = this.element.querySelector('.body');
    const holders = detail.lock?.holders.map(({ owner, label, until }) => [
      owner,
      label,
      until && Math.round(until / 1_000),
    ]);
    const key = JSON.stringify([detail.lock?.token, holders, detail.lock?.queue, detail.lock?.listeners]);
    if (body === null || key === this.shown) return;
    this.shown = key;
    const scrolled = body.querySelector('.queue')?.scrollTop ?? 0;
    body.replaceChildren(...buildAll(detailBody(detail, serverTime())));
    const queue = body.querySelector('.queue');
    if (queue !== null) queue.scrollTop = scrolled;
  }
}
