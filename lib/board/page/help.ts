import { h, type Tree } from '../view/tree.js';

const KEYS: readonly (readonly [keys: string, meaning: string])[] = [
  ['/', 'search'],
  ['↑ ↓', 'the lock above, below'],
  ['Home End', 'the first lock, the last one'],
  ['Enter', 'look at the lock'],
  ['Esc', 'close, or clear the search'],
  ['t', 'dark or light'],
  ['?', 'this help'],
];

export const helpDialog = (): Tree =>
  h(
    'dialog',
    { id: 'help', 'aria-labelledby': 'help-title' },
    h('h2', { id: 'help-title' }, 'Keyboard'),
    h(
      'dl',
      {},
      ...KEYS.flatMap(([keys, meaning]) => [
        h('dt', {}, ...keys.split(' ').map((key) => h('kbd', {}, key))),
        h('dd', {}, meaning),
      ]),
    ),
    h('form', { method: 'dialog' }, h('button', {}, 'Close')),
  );
