import { contenderOf } from '../contenders.mjs';
import { loopScenarios } from '../scenarios/loops.mjs';
import { check } from './budgets.mjs';
import { number } from './figures.mjs';
import { Ratios } from './ratios.mjs';
import { scaling } from './scaling.mjs';
import { markdown, rowsOf } from './table.mjs';

const NONE = '–';
const some = (value) => (value === undefined || Number.isNaN(value) ? NONE : rounded(value));
/** To about three digits: more would be noise. */
const rounded = (value) =>
  number(value, Math.abs(value) >= 100 || Number.isInteger(value) ? 0 : Math.abs(value) >= 10 ? 1 : 2);
const times = (value) => `${some(value)} ×`;

const machineOf = ({ machine: { cores, redis, node, java } }) =>
  [
    `${cores} cores, Redis ${redis}, Node ${node.split('.')[0]}`,
    ...(java ? [`Java ${java.split('.')[0]}`] : []),
  ].join(', ');
const roundsOf = ({ results }) =>
  Math.max(
    ...Object.values(results).flatMap(({ samples }) => Object.values(samples).map(({ length }) => length)),
  );

/** The bare pair of commands says how fast the machine was in that run. */
function speedOf({ results }) {
  const r = new Ratios(results);
  const [cpu, time] = ['clientCpu', 'p50'].map((figure) => some(r.median('uncontended', 'raw', figure)));
  return (
    `How fast that was: \`SET NX PX\` with its \`EVALSHA\`, one after another, took ${time} ms, and ${cpu} µs of CPU of the client. ` +
    'On the machines that the budgets come from it was 20 to 60 µs. Where it is more, as on a machine that others use too, the ' +
    'times are longer, and what runs more code of its own falls behind.'
  );
}

/** docs/benchmarks.md: all tables, and the budgets. */
export function benchmarksPage(record) {
  const { results, machine } = record;
  const shown = Object.values(results).filter(({ growth }) => !growth);
  const libraries = Object.entries(machine.libraries).filter(([name]) => !['cli-progress'].includes(name));
  return [
    '# Benchmarks',
    'Made by `npm run bench` and `npm run bench:docs`; change the benchmark, not this page.',
    `${machineOf(record)}. Medians of the rounds, and in brackets the least and the most; libraries take turns in each round. ` +
      'All run on one server and in the same processes, one connection per process, a TTL of 10 s, scripts loaded before. ' +
      'Without contention, as multi-locks, over several nodes and from one process to another, each has run for a second ' +
      'before it is measured, in each round, so that Node has compiled it; what a process does before that has a table of its ' +
      'own. ' +
      'Each is used as its README says, and where it polls once more with a poll of 10 ms. Commands, and µs of CPU of ' +
      'the clients and the server, are per acquisition with its release; commands that scripts run are not counted.',
    speedOf(record),
    'Violations are steps lost by a counter that nothing guards but the lock. *Gave up* are the callers whose library stopped ' +
      'trying; *unserved* are the callers that still waited after 10 s. *Least* and *most served* are the processes, then the ' +
      'callers, that had the fewest and the most turns of the same time.',
    'Redisson is the one for Java, on JVMs that have run warm, one connection pool in each; it counts nothing, so that its ' +
      'violations are not known.',
    `Versions: ${libraries.map(([name, version]) => `${name} ${version}`).join(', ')}.`,
    '![Acquisitions per second](benchmark.svg)',
    ...shown.flatMap((result) => [`## ${result.title}`, markdown(rowsOf(result))]),
    '## Budgets',
    'Numbers of commands are asserted, also in CI (`npm run bench -- --quick`). Times depend on the machine and on what ' +
      'else it does. The floor is what the same takes, in the same run, without this package, or what the cores allow: a ' +
      'budget beyond it asks for more than Redis, its client and Node can give.',
    markdown([
      ['budget', 'measured', 'limit', '', 'floor'],
      ...check(record).map(({ title, value, sign, limit, met, least }) => [
        title,
        some(value),
        `${sign} ${limit.toLocaleString('en-US')}`,
        met ? 'met' : '**missed**',
        least ? `${some(least.value)} (${least.what})` : '',
      ]),
    ]),
    'Of a held lease, a heap snapshot finds some 1,150 bytes in objects: the tenure 176, its numbers 144, the line of the ' +
      'name 144, the timer of the loss 120, the hold 104, the lease 56, and closures, contexts and strings of the rest. What ' +
      'is left are the tables of the maps, which double as they grow, and the bench that holds the lease.',
    '',
  ].join('\n\n');
}

/** Replaces `{{name}}` in a template; what was not measured is an error. */
export function fill(template, values) {
  return template.replace(/\{\{(\w+)\}\}/g, (_, name) => {
    const value = values[name];
    if (value === undefined) throw new Error(`Nothing is called {{${name}}}`);
    if (value.startsWith(NONE))
      throw new Error(`{{${name}}} was not measured: it takes all of npm run bench`);
    return value;
  });
}

/** What the templates of README and docs/scaling.md may name. */
export function values(record) {
  const { results } = record;
  const r = new Ratios(results);
  const s = scaling(record);
  const row = (kind, step, figures, contender) =>
    figures.map((figure) => some(s.at(kind, step, contender, figure)));
  const best = (scenario) => r.overBestPeer(scenario, 'ours');
  return {
    machine: machineOf(record),
    pairCpu: some(r.median('uncontended', 'raw', 'clientCpu')),
    rounds: String(roundsOf(record)),
    crowdRatio: times(best('crowd')),
    fleetRatio: times(best('4x8')),
    fairRatio: times(r.overBestPeer('4x8', 'fair')),
    fairGap: some((r.gap('loop-4x8', 'fair') ?? NaN) * 100),
    crowdCommands: some(r.median('crowd', 'ours', 'commands')),
    fairCommands: some(r.median('32x1', 'fair', 'commands')),
    heldCommands: some(r.median('held', 'ours', 'commands10s')),
    heldPeer: some(r.median('held', 'redis-semaphore', 'commands10s')),
    heldPeerName: contenderOf('redis-semaphore').title,
    uncontendedRatio: times(r.ratio('uncontended', 'ours', 'raw', 'p50')),
    processesTable: markdown([
      ['processes', 'plain: commands', 'messages', 'bytes', 'fair: commands', 'messages', 'bytes'],
      ...s.processes.map((step) => [
        String(step),
        ...row('processes', step, ['commands', 'messages', 'bytes'], 'ours'),
        ...row('processes', step, ['commands', 'messages', 'bytes'], 'fair'),
      ]),
    ]),
    waitersTable: markdown([
      ['waiters', 'plain: commands', 'server µs', 'per s', 'fair: commands', 'server µs', 'per s'],
      ...s.waiters.map((step) => [
        number(step, 0),
        ...row('waiters', step, ['commands', 'serverCpu', 'throughput'], 'ours'),
        ...row('waiters', step, ['commands', 'serverCpu', 'throughput'], 'fair'),
      ]),
    ]),
    leasesTable: markdown([
      ['leases', 'commands', 'KB on the wire', 'server ms', 'client ms'],
      ...s.leases.map((step) => [
        number(step, 0),
        ...row('leases', step, ['commandsPerRenewal'], 'ours'),
        some(s.at('leases', step, 'ours', 'traffic') / 1000),
        ...row('leases', step, ['serverCpu', 'clientCpu'], 'ours'),
      ]),
    ]),
    linesTable: markdown(
      [
        [
          'processes × callers',
          'lock',
          'per s',
          'commands',
          'p99 ms',
          'longest ms',
          'least / most served process',
        ],
        ...loopScenarios.flatMap(({ id, shape }) =>
          ['ours', 'fair', 'redis-semaphore', 'redisson'].map((contender) => [
            shape,
            contenderOf(contender).title,
            ...['throughput', 'commands', 'p99', 'max', 'processShare'].map((figure) =>
              some(r.median(id, contender, figure)),
            ),
          ]),
        ),
      ],
      { texts: 2 },
    ),
    fairMessages: some(s.fairMessages),
    fairBytes: some(s.fairBytes),
    leaseBytes: some(s.bytesPerRenewal),
    leaseServer: some(s.serverMicroseconds),
    leaseClient: some(s.clientMicroseconds),
    leaseServerMemory: some(s.serverBytes),
    leaseClientMemory: some(s.clientBytes),
    fleetConnections: some(s.fleet.connections),
    fleetCommands: some(s.fleet.commandsPerSecond),
    fleetTraffic: some(s.fleet.megabytesPerSecond),
    fleetCore: some(s.fleet.serverCore),
    fleetMemory: some(s.fleet.serverMegabytes),
    pair: some(s.serverPair),
    pairTogether: some(s.serverPairTogether),
    pairs: some(Math.round(s.pairsPerSecond / 1000) * 1000),
    pairsInHalf: some(Math.round(s.pairsInHalf / 1000) * 1000),
    hotKey: some(s.hotKey),
    hotKeyPlain: some(s.hotKeyPlain),
  };
}
