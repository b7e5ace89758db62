import { onOneLine } from '../../runtime/text.js';
import { clockText } from './times.js';
import { h, type Child, type Tree } from './tree.js';
import type {
  BoardChange,
  BoardDeadlock,
  BoardElection,
  BoardHealth,
  BoardNode,
  BoardOwn,
  BoardProblem,
} from './wire.js';

/** The store, node by node, and this process's part of it. */
export const healthPanel = (health: BoardHealth | null, { held, waiting }: BoardOwn): Child[] => [
  ...(health === null ? [h('p', { class: 'empty' }, 'Not known yet')] : nodesAndWarnings(health)),
  h('p', { class: 'note' }, `This process holds ${String(held)} and waits for ${String(waiting)}`),
];

function nodesAndWarnings({ nodes, warnings }: BoardHealth): Child[] {
  return [
    h('ul', { class: 'nodes' }, ...nodes.map(nodeItem)),
    ...warnings.map(({ code, node, message }) =>
      h('p', { class: 'warning' }, h('b', {}, node === '' ? code : `${code}, ${node}`), ' ', message),
    ),
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
        h('span', { class: 'election', title: onOneLine(name) }, onOneLine(name)),
        h('span', { class: `state ${state}` }, state),
        h(
          'span',
          { class: 'leader' },
          leader === null ? 'no process leads' : `${onOneLine(leader.label)}, term ${String(leader.term)}`,
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
              h(
                'li',
                {},
                h('b', {}, onOneLine(process)),
                ' waits for ',
                h('span', { class: 'mono' }, onOneLine(name)),
              ),
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
      h('span', { class: 'mono', title: onOneLine(name) }, onOneLine(name)),
    ),
    text !== '' && h('p', { class: 'text', title: onOneLine(text) }, onOneLine(text)),
  );
}

const stamp = (at: number): Tree => h('time', { datetime: new Date(at).toISOString() }, clockText(at));

export const problemText = ({ kind, since, seen, message }: BoardProblem): Child[] => [
  h('b', {}, kind === 'slow' ? 'The store is slow' : 'The locks cannot be read'),
  kind === 'slow'
    ? `: the look that began at ${clockText(since)} is not over. `
    : ` since ${clockText(since)}. `,
  seen === null ? 'Nothing has been seen yet. ' : `What is shown was seen at ${clockText(seen)}. `,
  message !== '' && h('span', { class: 'mono' }, message),
];

/** Nothing has been read yet: that there is no lock is not known. */
export const isUnseen = (problem: BoardProblem | null): boolean => problem !== null && problem.seen === null;
