import { render } from 'lit-html';
import {
  MOST_CHANGES,
  type BoardDetail,
  type BoardState,
  type BoardUpdate,
  type BoardWaits,
} from '../feed/wire.js';
import { board, rowsOf, type View } from '../view/board.js';
import { FEW } from '../view/entries.js';
import { queryOf, uiOf, type Ui } from '../view/ui.js';
import { Action } from './action.js';
import { addressOf, answerOf, byId } from './ask.js';
import { connect } from './connection.js';
import { listenToKeys } from './keyboard.js';
import { switchTheme } from './theme.js';

/** How often the lock or the holder that is open is asked for, and times go on, ms. */
const AGAIN = 1_000;
/** How many rows are made above and below those in sight. */
const MARGIN = 15;
const ROW = 52;

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** The page as it is looked at. All of it is shown anew after each change; only what differs is changed in the document. */
export class Page {
  private readonly root = byId('board');
  private state = JSON.parse(byId('state').textContent) as BoardState;
  private readonly view: Mutable<View> = {
    ui: this.with({}, uiOf(new URLSearchParams(location.search))),
    at: this.state.at,
    connection: 'connecting',
    window: { from: 0, to: 100, rowHeight: ROW },
    active: '',
    few: FEW,
    opened: { answer: undefined, notice: '' },
    waits: undefined,
    wish: undefined,
  };
  private receivedAt = performance.now();
  private asking = 0;

  begin(): void {
    const { root, view, state } = this;
    root.replaceChildren();
    this.show();
    root.addEventListener('click', (event) => {
      this.clicked(event);
    });
    root.addEventListener('input', ({ target }) => {
      const form = (target as HTMLInputElement).form;
      if (form?.id === 'toolbar') this.go(this.with(Object.fromEntries(new FormData(form))));
      else this.show();
    });
    root.addEventListener('submit', (event) => {
      const { id } = event.target as HTMLFormElement;
      if (id === 'toolbar' || id === 'act') event.preventDefault();
      if (id === 'act') void this.act();
    });
    root.addEventListener('focusin', ({ target }) => {
      const index = Number((target as Element).closest('tr.entry')?.ariaRowIndex) - 2;
      const key = this.rows()[index]?.key;
      if (key === undefined || key === view.active) return;
      view.active = key;
      this.show();
    });
    for (const type of ['scroll', 'resize'])
      window.addEventListener(type, () => {
        requestAnimationFrame(() => {
          this.show();
        });
      });
    document.addEventListener('visibilitychange', () => void this.ask());
    listenToKeys({
      move: (by) => {
        this.move(by);
      },
      close: () => {
        if (view.ui.lock !== '') this.go(this.with({ lock: '' }));
        else this.go(this.with({ holder: '' }));
      },
      clearSearch: () => {
        this.go(this.with({ q: '' }));
        this.move(0);
      },
    });
    setInterval(() => {
      this.show();
    }, AGAIN);
    connect(addressOf('events', { instance: state.instance }), {
      state: (fresh) => {
        this.told(fresh);
      },
      update: ({ set = [], gone = [], changes = [], ...parts }: BoardUpdate) => {
        const locks = new Map(this.state.locks.map((lock) => [lock.name, lock]));
        for (const lock of set) locks.set(lock.name, lock);
        for (const name of gone) locks.delete(name);
        const all = [...this.state.changes, ...changes].slice(-MOST_CHANGES);
        this.told({ ...this.state, ...parts, locks: [...locks.values()], changes: all });
      },
      cut: (how) => {
        view.connection = how;
        this.show();
      },
    });
    void this.ask();
  }

  private told(state: BoardState): void {
    this.state = state;
    this.receivedAt = performance.now();
    this.view.connection = 'live';
    this.show();
  }

  private rows() {
    return rowsOf(this.state, this.view);
  }

  private show(): void {
    const { view, root, state } = this;
    // The time of the server: the clock of this machine may be wrong.
    view.at = state.at + performance.now() - this.receivedAt;
    const rows = document.getElementById('rows');
    const rowHeight = rows?.querySelector<HTMLElement>('tr')?.offsetHeight ?? ROW;
    // Positive if the rows begin above the window.
    const above = rows === null ? 0 : view.window.from * rowHeight - rows.getBoundingClientRect().top;
    const first = Math.floor(above / rowHeight) - MARGIN;
    const from = Math.max(0, Math.min(first, this.rows().length - MARGIN));
    const to = from + Math.ceil(innerHeight / rowHeight) + 2 * MARGIN;
    view.window = { from, to, rowHeight };
    const count = state.locks.length;
    view.few = count <= view.few ? 2 * FEW : FEW;
    if (!this.rows().some(({ key }) => key === view.active)) view.active = this.rows()[0]?.key ?? '';
    render(board(state, view), root);
  }

  private with(change: Partial<Ui>, ui: Ui = this.view.ui): Ui {
    return { ...ui, instance: this.state.instance, ...change };
  }

  /** Looks at something else. */
  private go(ui: Ui): void {
    const { view, state } = this;
    const before = view.ui;
    view.ui = ui;
    history.replaceState(null, '', queryOf(ui, state));
    if (ui.lock !== before.lock) view.opened = { answer: undefined, notice: '' };
    if (ui.holder !== before.holder) view.waits = undefined;
    this.show();
    if (ui.lock !== before.lock && ui.lock !== '')
      document.getElementById('detail')?.focus({ preventScroll: true });
    else if (ui.lock !== before.lock || ui.holder !== before.holder) this.move(0);
    if (ui.lock !== before.lock || ui.holder !== before.holder) void this.ask();
  }

  private clicked(event: MouseEvent): void {
    const { view } = this;
    const row = (event.target as Element).closest('tr.entry');
    const target = (event.target as Element).closest<HTMLElement>('a, button') ?? row?.querySelector('a');
    if (!target || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const query = target.getAttribute('href');
    const { copy, action } = target.dataset;
    if (query?.startsWith('?') && target.closest('[data-away]') === null) {
      event.preventDefault();
      this.go(this.with({}, uiOf(new URLSearchParams(query))));
    } else if (copy !== undefined) {
      copyText(copy);
      view.opened = { ...view.opened, notice: 'Copied.' };
      this.show();
    } else if (action === 'ask' || action === 'force') {
      const wish = new Action(action, view.ui.lock, this.state.instance, () => {
        this.show();
      });
      view.wish = wish;
      wish.open();
    } else if (target.id === 'theme') switchTheme();
    else if (target.id === 'help-button') (byId('help') as HTMLDialogElement).showModal();
    else if (target.classList.contains('cancel')) target.closest('dialog')?.close();
  }

  private async act(): Promise<void> {
    const { view } = this;
    const wish = view.wish as Action;
    const done = await wish.send(() => view.wish === wish);
    if (done === undefined || view.ui.lock !== wish.name) return;
    view.opened = { ...view.opened, notice: done };
    this.show();
  }

  /** Asks for the lock and the holder that are open, again and again. A tab that is hidden costs the store nothing. */
  private async ask(): Promise<void> {
    const { view, state } = this;
    clearTimeout(this.asking);
    const { lock, holder } = view.ui;
    if (document.hidden || (lock === '' && holder === '')) return;
    const get = async <T>(file: string, query: Record<string, string>) => {
      const headers = { Accept: 'application/json' };
      const response = await fetch(addressOf(file, { instance: state.instance, ...query }), {
        headers,
      }).catch(() => undefined);
      // If the server does not answer, the page says so.
      return response && (await answerOf<T>(response).catch((error: unknown) => error as Error));
    };
    const [detail, waits] = await Promise.all([
      lock === '' ? undefined : get<BoardDetail>('lock', { name: lock }),
      holder === '' ? undefined : get<BoardWaits>('holder', { label: holder }),
    ]);
    if (lock === view.ui.lock && detail !== undefined) {
      view.opened = { ...view.opened, answer: detail };
    }
    if (holder === view.ui.holder && waits !== undefined && !(waits instanceof Error)) view.waits = waits;
    this.show();
    clearTimeout(this.asking);
    this.asking = window.setTimeout(() => void this.ask(), AGAIN);
  }

  /** Moves the focus by so many rows. */
  private move(by: number): void {
    const { view } = this;
    const rows = this.rows();
    const at = rows.findIndex(({ key }) => key === view.active);
    const index = Math.min(rows.length - 1, Math.max(0, at + by));
    const { rowHeight, from } = view.window;
    const body = document.getElementById('rows');
    if (rows[index] === undefined || body === null) return;
    view.active = rows[index].key;
    const top = body.getBoundingClientRect().top + (index - from) * rowHeight;
    if (top < 120 || top > innerHeight - rowHeight) scrollBy(0, top - innerHeight / 2);
    this.show();
    inRows(`[aria-rowindex="${String(index + 2)}"] a`)?.focus({ preventScroll: true });
  }
}

const inRows = (selector: string) => document.querySelector<HTMLElement>(`#rows ${selector}`);

/** A page that came over plain HTTP from another host may not use the clipboard itself. */
function copyText(text: string): void {
  const clipboard = navigator.clipboard as Clipboard | undefined;
  if (clipboard !== undefined) {
    void clipboard.writeText(text).catch(() => undefined);
    return;
  }
  const field = document.body.appendChild(document.createElement('textarea'));
  field.value = text;
  field.select();
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- the one way without a secure context
  document.execCommand('copy');
  field.remove();
}
