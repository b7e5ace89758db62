import type { BoardState } from '../feed/wire.js';

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

export const uiOf = (query: URLSearchParams): Ui => {
  const texts = TEXTS.map((field) => [field, query.get(field) ?? '']);
  const lists = LISTS.map((field) => [field, query.getAll(field)]);
  return Object.fromEntries([...texts, ...lists]) as Record<(typeof TEXTS)[number], string> &
    Record<(typeof LISTS)[number], string[]>;
};

/** The address of the page that shows this. */
export function queryOf(ui: Ui, { instances }: Pick<BoardState, 'instances'>): string {
  const query = new URLSearchParams();
  for (const field of TEXTS)
    if (ui[field] !== '' && !(field === 'instance' && ui.instance === instances[0]))
      query.set(field, ui[field]);
  for (const field of LISTS) for (const value of ui[field]) query.append(field, value);
  return `?${query.toString()}`;
}
