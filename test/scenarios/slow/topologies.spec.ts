import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { type LockModuleOptions } from '../../../lib/index.js';
import { QuorumEnvironment } from '../../stores/quorum/quorum-environment.js';
import { clusterOfAll } from '../../support/test-servers.js';
import { until } from '../until.js';

const environment = QuorumEnvironment.forAll(3);
const cluster = clusterOfAll();

const onNodes = () => ({ nodes: environment.urls });
const onCluster = () => ({ connection: { cluster: cluster.addresses } });

it.each<[string, () => Partial<LockModuleOptions>]>([
  ['Redlock', onNodes],
  ['a cluster', onCluster],
])('An election on %s goes from one process to the other and back', async (_, options) => {
  const services = [environment.service(options()), environment.service(options())];
  const elections = services.map((service) => service.getElection('tide'));
  const stop = new AbortController();
  const numbers: number[] = [];
  const turns: number[] = [];
  const runs = elections.map((election, index) =>
    election.run(
      async ({ number, signal }) => {
        turns.push(index);
        numbers.push(number);
        expect(elections.filter((one) => one.isLeader())).toHaveLength(1);
        expect((await elections[0]!.leader())?.term).toBeGreaterThanOrEqual(number);
        await until(() => signal.aborted);
      },
      { signal: stop.signal },
    ),
  );
  for (let turn = 1; turn <= 4; turn++) {
    await until(() => turns.length === turn && elections.some((election) => election.isLeader()));
    const leading = turns.at(-1)!;
    await until(async () => (await services[1 - leading]!.inspect('tide'))?.waiters.processes === 1);
    if (turn < 4) await elections[leading]!.resign();
  }
  stop.abort();
  await Promise.all(runs);
  expect(turns.slice(1).every((index, n) => index !== turns[n])).toBe(true);
  expect(numbers).toEqual(numbers.toSorted((x, y) => x - y));
  expect(await elections[0]!.leader()).toBeNull();
});

it('Work runs once per period on a cluster, also under names that have hash tags of their own', async () => {
  const services = [environment.service(onCluster()), environment.service(onCluster())];
  for (const name of ['report', '{tag}:report', 'odd}one', '{']) {
    const calls = [...services, ...services].map((locks) =>
      locks.once(name, { period: '1h' }, () => sleep(20)),
    );
    expect((await Promise.all(calls)).filter(({ ran }) => ran)).toHaveLength(1);
  }
});
