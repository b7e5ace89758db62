import { render } from 'lit-html';
import * as wire from '../feed/wire.js';
import { board, isOld } from '../view/board.js';
import { entriesOf, FEW } from '../view/entries.js';
import { queryOf, uiOf, viewOf, type Ui, type View } from '../view/ui.js';
import { Action } from './action.js';
import { addressOf, answerOf, byId, copyText } from './ask.js';
import { connect } from './connection.js';
import { listenToKeys } from './keyboard.js';
import { switchTheme } from './theme.js';

/** How often the lock that is open is asked for, and times go on, ms. */
const AGAIN = 1_000;
/** How many rows are made above and below those in sight. */
const MARGIN = 15;
const ROW = 52;

/** The page as it is looked at. All of it is shown anew after each change; only what differs is changed in the document. */
export class Page {
  private readonly view: { -readonly [K in keyof View]: View[K] } = {
    ...viewOf(JSON.parse(byId('state').textContent) as wire.BoardState, new URLSearchParams(location.search)),
    ...{ at: 0, connection: 'connecting', active: '' },
  };
  private receivedAt = performance.now();
  private asking = 0;
  private wish: Action | undefined;

  begin(): void {
    const root = byId('board');
    root.replaceChildren();
    this.show();
    root.addEventListener('click', this.clicked);
    root.addEventListener('input', ({ target }) => {
      const { form } = target as HTMLInputElement;
      if (form?.id === 'toolbar') this.go(Object.fromEntries(new FormData(form)));
      else this.wish?.typed();
    });
    root.addEventListener('submit', (event) => {
      const { id } = event.target as HTMLFormElement;
      if (id === 'toolbar' || id === 'act') event.preventDefault();
      if (id === 'act') void this.act();
    });
    root.addEventListener('focusin', ({ target }) => {
      const index = Number((target as Element).closest('tr.entry')?.ariaRowIndex) - 2;
      const key = entriesOf(this.view)[index]?.key ?? this.view.active;
      if (key === this.view.active) return;
      this.view.active = key;
      this.show();
    });
    for (const type of ['scroll', 'resize'])
      window.addEventListener(type, () => requestAnimationFrame(this.show));
    document.addEventListener('visibilitychange', () => void this.ask());
    const close = () => {
      this.go(this.view.ui.lock === '' ? { holder: '' } : { lock: '' });
    };
    listenToKeys(this.move, close, () => {
      this.go({ q: '' });
      this.move(0);
    });
    setInterval(this.show, AGAIN);
    connect(addressOf('events', { instance: this.view.state.instance }), {
      state: this.told,
      update: ({ set = [], gone = [], changes = [], ...parts }) => {
        const locks = new Map(this.view.state.locks.map((lock) => [lock.name, lock]));
        for (const lock of set) locks.set(lock.name, lock);
        for (const name of gone) locks.delete(name);
        const all = [...this.view.state.changes, ...changes].slice(-wire.MOST_CHANGES);
        this.told({ ...this.view.state, ...parts, locks: [...locks.values()], changes: all });
      },
      cut: (how) => {
        this.view.connection = how;
        this.show();
      },
    });
    void this.ask();
  }

  private readonly told = (state: wire.BoardState): void => {
    this.view.state = state;
    this.receivedAt = performance.now();
    this.view.connection = 'live';
    this.show();
  };

  private readonly show = (): void => {
    const { view } = this;
    const { state } = view;
    const rows = entriesOf(this.view);
    // The time of the server: the clock of this machine may be wrong. It stands still while nothing is known: the age of a
    // lock that has ended meanwhile would look unusual.
    if (!isOld(view)) view.at = state.at + performance.now() - this.receivedAt;
    else if (view.at === 0) view.at = state.at;
    view.few = state.locks.length <= view.few ? 2 * FEW : FEW;
    if (!rows.some(({ key }) => key === view.active)) view.active = rows[0]?.key ?? '';
    const body = document.getElementById('rows');
    const rowHeight = body?.querySelector<HTMLElement>('tr')?.offsetHeight ?? ROW;
    // Positive if the rows begin above the window.
    const above = body === null ? 0 : view.window.from * rowHeight - body.getBoundingClientRect().top;
    const from = Math.max(0, Math.min(Math.floor(above / rowHeight), rows.length) - MARGIN);
    view.window = { from, to: from + Math.ceil(innerHeight / rowHeight) + 2 * MARGIN, rowHeight };
    render(board(view), byId('board'));
  };

  /** Looks at something else. */
  private go(change: Partial<Ui>): void {
    const { view } = this;
    const before = view.ui;
    const ui = (view.ui = { ...before, ...change });
    history.replaceState(null, '', queryOf(ui, this.view.state));
    if (ui.lock !== before.lock) view.opened = { answer: undefined, notice: '' };
    this.show();
    if (ui.lock === before.lock && ui.holder === before.holder) return;
    if (ui.lock !== before.lock && ui.lock !== '') byId('detail').focus({ preventScroll: true });
    else this.move(0);
    void this.ask();
  }

  private readonly clicked = (event: MouseEvent): void => {
    const { view } = this;
    const clicked = event.target as Element;
    const target =
      clicked.closest<HTMLElement>('a, button') ?? clicked.closest('tr.entry')?.querySelector('a');
    if (!target || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const query = target.getAttribute('href');
    const { copy, action } = target.dataset;
    if (query?.startsWith('?') && target.closest('[data-away]') === null) {
      event.preventDefault();
      this.go(uiOf(new URLSearchParams(query), view.state));
    } else if (copy !== undefined) {
      copyText(copy);
      this.notice('Copied.');
    } else if (action === 'ask' || action === 'force') {
      view.wish = this.wish = new Action(action, view.ui.lock, view.state.instance, this.show);
      this.wish.open();
    } else if (target.id === 'theme') switchTheme();
    else if (target.id === 'help-button') (byId('help') as HTMLDialogElement).showModal();
    else if (target.classList.contains('cancel')) target.closest('dialog')?.close();
  };

  private notice(notice: string): void {
    this.view.opened = { ...this.view.opened, notice };
    this.show();
  }

  private async act(): Promise<void> {
    const { wish } = this;
    const done = await wish?.send(() => this.wish === wish);
    if (done !== undefined && this.view.ui.lock === wish?.name) this.notice(done);
  }

  /** Asks for the lock that is open, again and again. A tab that is hidden costs the store nothing. */
  private async ask(): Promise<void> {
    const { view } = this;
    const { lock, instance } = view.ui;
    clearTimeout(this.asking);
    if (document.hidden || lock === '') return;
    const url = addressOf('lock', { instance, name: lock });
    const response = await fetch(url, { headers: { Accept: 'application/json' } }).catch(() => undefined);
    // If the server does not answer, the page says so.
    const answer =
      response && (await answerOf<wire.BoardDetail>(response).catch((error: unknown) => error as Error));
    if (lock === view.ui.lock && answer !== undefined) view.opened = { ...view.opened, answer };
    this.show();
    clearTimeout(this.asking);
    this.asking = window.setTimeout(() => void this.ask(), AGAIN);
  }

  /** Moves the focus by so many rows. */
  private readonly move = (by: number): void => {
    const { view } = this;
    const rows = entriesOf(this.view);
    const at = rows.findIndex(({ key }) => key === view.active);
    const index = Math.min(rows.length - 1, Math.max(0, at + by));
    view.active = rows[index]?.key ?? '';
    const top = byId('rows').getBoundingClientRect().top + (index - view.window.from) * view.window.rowHeight;
    if (top < 120 || top > innerHeight - view.window.rowHeight) scrollBy(0, top - innerHeight / 2);
    this.show();
    const link = document.querySelector<HTMLElement>(`#rows [aria-rowindex="${String(index + 2)}"] a`);
    link?.focus({ preventScroll: true });
  };
}
