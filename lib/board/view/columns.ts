import { h, type Tree } from './tree.js';

export type SortKey = 'name' | 'age' | 'waiting';

const COLUMNS: readonly (readonly [name: string, title: string, sort?: SortKey])[] = [
  ['name', 'Lock', 'name'],
  ['holder', 'Held by'],
  ['age', 'Held for', 'age'],
  ['lease', 'Lease left'],
  ['waiting', 'Waiting', 'waiting'],
  ['token', 'Token'],
];

/** The head of the table. The script turns the titles that sort into buttons. */
export const tableHead = (
  sorted: SortKey,
  isReversed: boolean,
  content: (title: string, sort: SortKey) => Tree | string,
): Tree =>
  h(
    'thead',
    { role: 'rowgroup' },
    h(
      'tr',
      { role: 'row' },
      ...COLUMNS.map(([name, title, sort]) =>
        h(
          'th',
          {
            class: name,
            scope: 'col',
            role: 'columnheader',
            'aria-sort': sort === sorted ? directionOf(sort, isReversed) : undefined,
          },
          sort === undefined ? title : content(title, sort),
        ),
      ),
    ),
  );

const directionOf = (sort: SortKey, isReversed: boolean): string =>
  (sort === 'name') === isReversed ? 'descending' : 'ascending';
