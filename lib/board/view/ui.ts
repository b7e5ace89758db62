import type { BoardDetail, BoardState } from '../feed/wire.js';
import type { Wish } from './dialogs.js';
import { FEW } from './entries.js';

/** How many rows the first screen has. The script shows all. */
const FIRST_ROWS = 100;

/** What a viewer looks at. It is the query of the page's address: each link works without the script, too. */
export interface Ui {
  readonly instance: string;
  /** The lock that is open; empty if none is. */
  readonly lock: string;
  /** Only the locks that this process holds or waits for. */
  readonly holder: string;
  readonly q: string;
  readonly kind: string;
  readonly state: string;
  readonly sort: string;
  /** Groups that are open, or shut, other than they are by themselves. */
  readonly open: readonly string[];
  readonly shut: readonly string[];
}

const TEXTS = ['instance', 'lock', 'holder', 'q', 'kind', 'state', 'sort'] as const;
const LISTS = ['open', 'shut'] as const;

export const uiOf = (query: URLSearchParams, { instance }: BoardState): Ui => {
  const texts = TEXTS.map((field) => [field, query.get(field) ?? '']);
  const lists = LISTS.map((field) => [field, query.getAll(field)]);
  return { ...(Object.fromEntries([...texts, ...lists]) as unknown as Ui), instance };
};

/** All that the page shows. */
export interface View {
  readonly state: BoardState;
  readonly ui: Ui;
  /** The time of the server. */
  readonly at: number;
  /** Empty before the script runs. */
  readonly connection: '' | 'connecting' | 'live' | 'lost' | 'refused';
  /** The rows that are made, and the height of each in px: others are out of sight. */
  readonly window: { readonly from: number; readonly to: number; readonly rowHeight: number };
  /** The key of the row that Tab reaches, if keys move between rows. */
  readonly active: string | undefined;
  /** So many locks are shown without their groups being opened. */
  readonly few: number;
  /** The lock that is open, or why it cannot be read, and the outcome of the last action of the viewer. */
  readonly opened: { readonly answer: BoardDetail | Error | undefined; readonly notice: string };
  /** The action that the dialog is open for. */
  readonly wish: Wish | undefined;
}

/** The first screen of a state. */
export const viewOf = (state: BoardState, query: URLSearchParams): View => ({
  ...{ state, ui: uiOf(query, state), at: state.at, connection: '', active: undefined, few: FEW },
  ...{ wish: undefined, opened: { answer: undefined, notice: '' } },
  window: { from: 0, to: FIRST_ROWS, rowHeight: 0 },
});

/** The address of the page that shows this. */
export function queryOf(ui: Ui, { instances }: Pick<BoardState, 'instances'>): string {
  const query = new URLSearchParams();
  const instance = ui.instance === instances[0] ? '' : ui.instance;
  for (const [field, values] of Object.entries({ ...ui, instance }))
    for (const value of [values].flat()) if (value !== '') query.append(field, value);
  return `?${query.toString()}`;
}

/** The address of the page that differs in this. */
export const hrefOf = ({ ui, state }: View, change: Partial<Ui>): string =>
  queryOf({ ...ui, ...change }, state);
