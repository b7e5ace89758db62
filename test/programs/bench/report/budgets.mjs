import { failuresOf } from './failures.mjs';
import { Ratios } from './ratios.mjs';

const atMost = (limit) => ({ limit, sign: '≤', holds: (value) => value <= limit });
const atLeast = (limit) => ({ limit, sign: '≥', holds: (value) => value >= limit });

/**
 * What the package has set itself. Counts of commands are exact and asserted, and so is exclusion; times depend on the
 * machine and its other work, and are reported.
 */
const budgets = (r) => {
  /** One process's first wait subscribes, once. */
  const commandsOf = (scenario, contender) => {
    const sample = r.samples(scenario, contender)[0];
    return sample && r.most(scenario, contender, 'commands') - sample.subscribes / sample.acquisitions;
  };
  return [
    exact(
      'uncontended: commands per acquire and release',
      r.most('uncontended', 'ours', 'commands'),
      atMost(2),
    ),
    exact('64 loops: commands per acquire and release', r.most('parallel', 'ours', 'commands'), atMost(2)),
    exact(
      '256 loops: commands per acquire and release',
      r.most('parallel-256', 'ours', 'commands'),
      atMost(2),
    ),
    ...MULTIS.map((names) =>
      exact(
        `multi-lock of ${names}: commands per acquire and release`,
        r.most(`multi-${names}`, 'ours', 'commands'),
        atMost(2),
      ),
    ),
    exact('re-entry: commands', r.most('re-entry', 'ours', 'commands'), atMost(0)),
    exact('100 waiters: commands per acquisition', r.most('crowd', 'ours', 'commands'), atMost(1)),
    exact('4 × 8, plain: commands per acquisition', r.most('4x8', 'ours', 'commands'), atMost(1)),
    exact('4 × 8, fair: commands per acquisition', commandsOf('4x8', 'fair'), atMost(2.1)),
    exact('32 × 1, fair: commands per acquisition', commandsOf('32x1', 'fair'), atMost(2.1)),
    exact('32 × 1, again and again: commands per acquisition', commandsOf('loop-32x1', 'ours'), atMost(2.1)),
    // One for a hundred, and the PINGs of the connection for messages.
    // Whole commands: the rounds of renewals do not end with the time that is measured.
    exact(
      '10,000 held leases: commands per 10 s',
      whole(r.median('held', 'ours', 'commands10s')),
      atMost(102),
    ),
    exact('times that two were in at once, this package', violations(r), atMost(0)),

    exact('scenarios that ended in an error', failuresOf({ results: r.results }).length, atMost(0)),
    exact('the same without a lock', r.median('control', 'none', 'violations'), atLeast(1)),

    timed(
      'uncontended: client CPU beside its two scripts by hand',
      r.ratio('uncontended', 'ours', 'by-hand', 'clientCpu'),
      atMost(1.25),
    ),
    timed(
      'uncontended: throughput beside redlock',
      r.ratio('uncontended', 'ours', 'redlock'),
      atLeast(1),
      floor('its two scripts by hand', r.ratio('uncontended', 'by-hand', 'redlock')),
    ),
    timed('64 loops: throughput beside SET NX PX + EVALSHA', r.ratio('parallel', 'ours', 'raw'), atLeast(1)),
    timed('64 loops: client CPU beside it', r.ratio('parallel', 'ours', 'raw', 'clientCpu'), atMost(0.8)),
    timed(
      '64 loops: server CPU beside its two scripts by hand',
      r.ratio('parallel', 'ours', 'by-hand', 'serverCpu'),
      atMost(0.8),
    ),
    timed(
      '64 loops, first half second: throughput beside its two scripts by hand',
      r.ratio('cold-64', 'ours', 'by-hand'),
      atLeast(0.8),
    ),
    timed(
      '256 loops: throughput beside SET NX PX + EVALSHA',
      r.ratio('parallel-256', 'ours', 'raw'),
      atLeast(1.3),
    ),
    ...MULTIS.flatMap((names) => [
      timed(
        `multi-lock of ${names}: throughput beside redlock`,
        r.ratio(`multi-${names}`, 'ours', 'redlock'),
        atLeast(1),
        leastOf(r, names, 'throughput'),
      ),
      timed(
        `multi-lock of ${names}: server CPU beside redlock`,
        r.ratio(`multi-${names}`, 'ours', 'redlock', 'serverCpu'),
        atMost(1.5),
        leastOf(r, names, 'serverCpu'),
      ),
    ]),
    timed('re-entry: µs', r.median('re-entry', 'ours', 'microseconds'), atMost(5)),
    timed('100 waiters: throughput over the best peer', r.overBestPeer('crowd', 'ours'), atLeast(20)),
    timed('4 × 8, fair: least served below most served', r.gap('loop-4x8', 'fair'), atMost(0.05)),
    timed('32 × 1, fair: least served below most served', r.gap('loop-32x1', 'fair'), atMost(0.05)),
    ...LINES.flatMap(({ scenario, title, overPeer }) => [
      timed(
        `${title}: least served process beside the most served`,
        r.median(scenario, 'ours', 'processShare'),
        atLeast(0.8),
      ),
      timed(
        `${title}: p99 beside the best peer's`,
        beside(r.median(scenario, 'ours', 'p99'), r.leastOfPeers(scenario, 'p99')),
        atMost(1),
      ),
      ...(overPeer === undefined
        ? []
        : [
            timed(
              `${title}: throughput beside redis-semaphore`,
              r.ratio(scenario, 'ours', 'redis-semaphore'),
              atLeast(overPeer),
            ),
          ]),
    ]),
    timed(
      '32 × 1, again and again: throughput beside the fair lock',
      r.ratio('loop-32x1', 'ours', 'fair'),
      atLeast(0.9),
    ),
    timed(
      'hand-over, fair: beside a bare PUBLISH',
      r.ratio('hand-over', 'fair', 'publish', 'p50'),
      atMost(1.15),
      floor('its scripts and one message by hand', r.ratio('hand-over', 'queued-fair', 'publish', 'p50')),
    ),
    timed(
      'hand-over, plain: beside a bare PUBLISH, then SET NX',
      r.ratio('hand-over', 'ours', 'publish-take', 'p50'),
      atMost(1.15),
      floor('its scripts and one message by hand', r.ratio('hand-over', 'queued', 'publish-take', 'p50')),
    ),
    timed(
      "hand-over, plain: p99 over p50, beside the bare one's",
      beside(tail(r, 'ours'), tail(r, 'publish-take')),
      atMost(1),
    ),
    ...[3, 5].flatMap((nodes) => [
      timed(
        `Redlock over ${nodes} nodes, one after another: throughput beside redlock`,
        r.ratio(`redlock-${nodes}`, 'ours', 'redlock'),
        atLeast(0.9),
        floor('its two scripts by hand', r.ratio(`redlock-${nodes}`, 'by-hand', 'redlock')),
      ),
      timed(
        `Redlock over ${nodes} nodes, 64 loops: throughput beside redlock`,
        r.ratio(`redlock-loops-${nodes}`, 'ours', 'redlock'),
        atLeast(1.5),
      ),
    ]),
    ...['2x1of3', '4x1of3', '4x2of5'].flatMap((scene) => [
      timed(
        `Redlock, ${scene} nodes frozen: throughput beside all nodes`,
        r.median(`absence-${scene}`, 'ours', 'share'),
        atLeast(0.5),
      ),
      timed(
        `Redlock, ${scene} nodes frozen: longest wait in hand-overs`,
        r.median(`absence-${scene}`, 'ours', 'handOvers'),
        atMost(20),
      ),
    ]),
    timed('10,000 held leases: % of a core', r.median('held', 'ours', 'core'), atMost(2)),
    timed('bytes per held lease', r.median('lease-memory', 'ours', 'bytes'), atMost(1_500)),
    timed(
      'bytes per waiter',
      r.median('waiter-memory', 'ours', 'bytes'),
      atMost(1_000),
      floor('a bare promise and its await', r.median('waiter-memory', 'none', 'bytes')),
    ),
    timed('@DistributedLock above using: µs', r.median('decorator', 'ours', 'above'), atMost(5)),
    timed(
      'tracing channels without a listener: % of an acquisition',
      r.median('telemetry', 'ours', 'percent'),
      atMost(1),
    ),
    timed(
      'lockOrder, a known step: % of a nested acquisition',
      r.median('nested', 'ours', 'orderedPercent'),
      atMost(1),
    ),
    timed('list, 10,000 among 1,000,000 keys: s', r.median('list', 'ours', 'listSeconds'), atMost(2)),
    timed('list: slowest command, ms', r.median('list', 'ours', 'slowestCommand'), atMost(5)),
    timed(
      'board, 1,000 viewers: longest block of the event loop, ms',
      r.median('board', 'ours', 'longestBlock'),
      atMost(50),
    ),
    timed('board, 1,000 viewers: leases of 3 s kept, of 3', r.median('board', 'ours', 'kept'), atLeast(3)),
  ];
};

/** The plain lock, wanted again and again by callers of several processes: it serves processes evenly, and batches their callers. */
const LINES = [
  { scenario: 'loop-16x2-2ms', title: '16 × 2, again and again, for 2 ms' },
  { scenario: 'loop-16x2', title: '16 × 2, again and again', overPeer: 2.5 },
  { scenario: 'loop-8x4', title: '8 × 4, again and again', overPeer: 2 },
  { scenario: 'loop-4x8', title: '4 × 8, again and again', overPeer: 1.8 },
];

/** So many names. */
const MULTIS = [1, 10, 50];

/**
 * Those that have been measured, each with whether it is met.
 * @param complete everything was to be measured: an asserted one that is missing has failed
 */
export const check = ({ results }, complete = false) =>
  budgets(new Ratios(results))
    .filter(({ value, asserted }) => value !== undefined || (asserted && complete))
    .map(({ holds, value = NaN, ...budget }) => ({ ...budget, value, met: holds(value) }));

const exact = (title, value, limit) => ({ title, value, asserted: true, ...limit });
const timed = (title, value, limit, least) => ({ title, value, asserted: false, ...limit, least });
/** What the same takes without this package: no work of ours can go below it. */
const floor = (what, value) => value && { what, value };

/** Of so many names. */
const leastOf = (r, names, figure) =>
  floor('hash, token and message by hand', r.ratio(`multi-${names}`, 'least', 'redlock', figure));

const whole = (value) => (value === undefined ? undefined : Math.round(value));
const beside = (value, other) => (other === undefined || value === undefined ? undefined : value / other);

function violations(r) {
  const counts = Object.keys(r.results).flatMap((scenario) =>
    ['ours', 'fair', 'no-handoff'].map((contender) => r.most(scenario, contender, 'violations')),
  );
  const counted = counts.filter(Number.isFinite);
  return counted.length === 0 ? undefined : Math.max(...counted);
}

function tail(r, contender) {
  const p50 = r.median('hand-over', contender, 'p50');
  return p50 && r.median('hand-over', contender, 'p99') / p50;
}
