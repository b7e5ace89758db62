import { clockText } from './times.js';
import { h, type Child, type Tree } from './tree.js';
import type {
  BoardChange,
  BoardDeadlock,
  BoardElection,
  BoardHealth,
  BoardNode,
  BoardProblem,
} from './wire.js';

/** The store, node by node. */
export function healthPanel(health: BoardHealth | null): Child[] {
  if (health === null) return [h('p', { class: 'empty' }, 'Not known yet')];
  const { nodes, warnings, held, waiting } = health;
  return [
    h('ul', { class: 'nodes' }, ...nodes.map(nodeItem)),
    ...warnings.map(({ code, node, message }) =>
      h('p', { class: 'warning' }, h('b', {}, node === '' ? code : `${code}, ${node}`), ' ', message),
    ),
    h('p', { class: 'note' }, `This process holds ${String(held)} and waits for ${String(waiting)}`),
  ];
}

const nodeItem = ({ node, status, latency, error, notes }: BoardNode): Tree =>
  h(
    'li',
    {},
    h('span', { class: `dot ${status}`, 'aria-hidden': 'true' }),
    h('span', { class: 'node', title: node }, node),
    h('span', { class: `status ${status}` }, status),
    h('span', { class: 'latency' }, latency === null ? '' : `${latency.toFixed(1)} ms`),
    notes.length > 0 && h('span', { class: 'notes' }, notes.join(' · ')),
    error !== null && h('span', { class: 'error' }, error),
  );

export const electionPanel = (elections: readonly BoardElection[]): Child[] => [
  h(
    'ul',
    { class: 'elections' },
    ...elections.map(({ name, state, leader }) =>
      h(
        'li',
        {},
        h('span', { class: 'election', title: name }, name),
        h('span', { class: `state ${state}` }, state),
        h(
          'span',
          { class: 'leader' },
          leader === null ? 'no process leads' : `${leader.label}, term ${String(leader.term)}`,
        ),
      ),
    ),
  ),
];

export const deadlockPanel = (deadlocks: readonly BoardDeadlock[]): Child[] => [
  h(
    'ul',
    { class: 'deadlocks' },
    ...[...deadlocks]
      .reverse()
      .map(({ at, cycle, state }) =>
        h(
          'li',
          {},
          h(
            'p',
            {},
            stamp(at),
            h(
              'span',
              { class: `state ${state === 'stands' ? 'down' : 'is-over'}` },
              state === 'told' ? 'over' : state,
            ),
          ),
          h(
            'ol',
            {},
            ...cycle.map(({ name, process }) =>
              h('li', {}, h('b', {}, process), ' waits for ', h('span', { class: 'mono' }, name)),
            ),
          ),
        ),
      ),
  ),
];

const TITLES: Readonly<Record<BoardChange['type'], string>> = {
  acquired: 'acquired',
  released: 'released',
  'handed-on': 'handed on',
  waiting: 'waited for',
  'waiting-over': 'nothing waits',
  lost: 'lost',
  'timed-out': 'timed out',
  deadlock: 'deadlock',
  'lock-order': 'lock order',
  'waiting-long': 'waits long',
  'held-long': 'held long',
  'renewal-failed': 'renewal failed',
  'release-failed': 'release failed',
  'release-requested': 'asked for',
  'release-request-sent': 'has asked',
  'force-released': 'taken away',
  warning: 'warning',
  disconnected: 'disconnected',
  reconnected: 'connected again',
};
const BAD = new Set([
  'lost',
  'deadlock',
  'renewal-failed',
  'release-failed',
  'disconnected',
  'force-released',
]);
const NOTEWORTHY = new Set([
  'timed-out',
  'lock-order',
  'waiting-long',
  'held-long',
  'warning',
  'waiting',
  'release-requested',
  'release-request-sent',
]);

/** The newest first. */
export function changeItem({ id, at, type, name, text }: BoardChange): Tree {
  const tone = BAD.has(type) ? 'bad' : NOTEWORTHY.has(type) ? 'note' : 'calm';
  return h(
    'li',
    { class: tone, 'data-id': id },
    stamp(at),
    h(
      'p',
      {},
      h('span', { class: 'what' }, TITLES[type]),
      ' ',
      h('span', { class: 'mono', title: name }, name),
    ),
    text !== '' && h('p', { class: 'text', title: text }, text),
  );
}

const stamp = (at: number): Tree => h('time', { datetime: new Date(at).toISOString() }, clockText(at));

export const problemText = ({ since, message }: BoardProblem): Child[] => [
  h('b', {}, 'The store does not answer'),
  ` since ${clockText(since)}. What is shown was seen before. `,
  h('span', { class: 'mono' }, message),
];
