import { onOneLine } from '../../runtime/text.js';
import { queryOf } from '../view/links.js';
import { h, type Tree } from '../view/tree.js';
import type { BoardState } from '../view/wire.js';

/** What only works with the script is hidden until it runs. */
export function topBar({ instance, instances, label }: BoardState): Tree {
  const links = instances.map((name) =>
    h('a', { href: queryOf(name, instances), 'aria-current': name === instance ? 'page' : undefined }, name),
  );
  return h(
    'header',
    { class: 'top' },
    h('h1', {}, lockIcon(), 'Locks'),
    instances.length > 1 && h('nav', { 'aria-label': 'Instances' }, ...links),
    h('p', { class: 'seen' }, 'seen by ', h('b', {}, onOneLine(label))),
    h(
      'p',
      { id: 'live', role: 'status', hidden: true },
      h('span', { class: 'dot', 'aria-hidden': 'true' }),
      h('span', { class: 'text' }, 'Connecting'),
    ),
    h(
      'div',
      { id: 'controls', hidden: true },
      h('button', { id: 'theme', type: 'button', 'aria-label': 'Dark or light' }, '◐'),
      h('button', { id: 'help-button', type: 'button', 'aria-label': 'Keyboard help' }, '?'),
    ),
  );
}

/** Search and filter. */
export const toolbar = (): Tree =>
  h(
    'div',
    { id: 'toolbar', role: 'search', hidden: true },
    h('input', {
      id: 'search',
      type: 'search',
      placeholder: 'Search names and holders',
      'aria-label': 'Search names and holders',
      autocomplete: 'off',
      spellcheck: 'false',
    }),
    h(
      'div',
      { class: 'filter', role: 'group', 'aria-label': 'Show' },
      ...[
        ['all', 'All'],
        ['held', 'Held'],
        ['waited', 'Waited for'],
      ].map(([value = '', title = '']) =>
        h(
          'button',
          { type: 'button', 'data-filter': value, 'aria-pressed': value === 'all' ? 'true' : 'false' },
          title,
        ),
      ),
    ),
    h('p', { id: 'count', role: 'status' }),
  );

const lockIcon = (): Tree =>
  h(
    'svg',
    { class: 'logo', viewBox: '0 0 16 16', 'aria-hidden': 'true' },
    h('rect', { x: 2, y: 7, width: 12, height: 8, rx: 2 }),
    h('path', { d: 'M5 7V5a3 3 0 0 1 6 0v2', fill: 'none', 'stroke-width': 2 }),
  );
