import { describe, expect, it } from '@jest/globals';
import { type Lock, type LockService, LockUnavailableError } from '../../../../lib/index.js';
import { TestEnvironment } from '../../../support/test-environment.js';
import { until } from '../../../scenarios/until.js';
import type { RedisServer } from '../../../support/redis-server.js';
import { masterOf } from '../../../support/replicas.js';
import { clusterOfAll } from '../../../support/test-servers.js';

/** ms; a command has two seconds then, and WAIT half of one: a machine with much to do needs them. */
const LEASE = 12_000;

const environment = TestEnvironment.ofEach();
const cluster = clusterOfAll();
let names = 0;

const service = (): LockService =>
  environment.service({
    connection: { cluster: cluster.addresses },
    leaseTime: LEASE,
    waitTime: 2_000,
    replication: { replicas: 1 },
  });

const KINDS: [string, (locks: LockService, name: string) => Lock][] = [
  ['plain', (locks, name) => locks.getLock(name)],
  ['fair', (locks, name) => locks.getFairLock(name)],
];

/** A name, where its slot is, the replica there, and another master. */
async function place() {
  const name = `replicated:${String(++names)}`;
  const slot = await cluster.slotOf(`lock:${name}`);
  const master = await cluster.masterOf(slot);
  const followed = await Promise.all(cluster.servers.map(masterOf));
  const replica = cluster.servers[followed.indexOf(master.port)] ?? master;
  const to = (await cluster.masters()).find((other) => other !== master) ?? master;
  return { name, slot, replica, to };
}

/** Whether the replica, asked for its own data, has the lock. */
async function has(replica: RedisServer, name: string): Promise<boolean> {
  await replica.client().readonly();
  return (await replica.client().exists(`lock:${name}`)) === 1;
}

describe.each(KINDS)('replication on a cluster, %s', (_, lockOf) => {
  it('what is acquired is on the replica of its master, wherever that is', async () => {
    const locks = service();
    for (let n = 0; n < 20; n++) {
      const { name, replica } = await place();
      const lease = await lockOf(locks, name).acquire();
      expect(await has(replica, name)).toBe(true);
      await lease.release();
    }
  });

  it('what no replica confirms is not acquired, and given back; the other masters go on', async () => {
    const locks = service();
    const { name, replica } = await place();
    let other = await place();
    while (other.replica === replica) other = await place();
    await (await lockOf(locks, name).acquire()).release();
    cluster.freeze(replica);
    const error = await lockOf(locks, name)
      .acquire()
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect((error as LockUnavailableError).cause).toMatchObject({ name: 'TooFewReplicas' });
    await (await lockOf(locks, other.name).acquire()).release();
    cluster.thaw(replica);
    await until(async () => (await locks.inspect(name)) === null);
    await until(
      async () =>
        (await lockOf(locks, name)
          .tryAcquire()
          .catch(() => null)) !== null,
    );
  });
});

it.each(KINDS)(
  'while a slot is on its way, the replica of the node that has the lock is asked: a %s lock stays held, and is extended',
  async (_, lockOf) => {
    const locks = service();
    const { name, slot, to } = await place();
    const held = await lockOf(locks, name).acquire();
    const fixed = await lockOf(locks, `{lock:${name}}`).acquire({ leaseTime: 60_000 });
    const from = await cluster.beginMove(slot, to);
    await cluster.migrate(slot, from, to);
    await Promise.all([from.resetCommandCalls(), to.resetCommandCalls()]);

    await fixed.extend(120_000);
    expect(fixed.remainingTime()).toBeGreaterThan(100_000);
    // The next renewal counts.
    let least = held.remainingTime();
    await until(() => {
      const left = held.remainingTime();
      least = Math.min(least, left);
      return left > least;
    });
    expect((await from.commandCalls()).wait).toBeUndefined();
    expect((await to.commandCalls()).wait).toBeGreaterThanOrEqual(2);

    await cluster.endMove(slot, to);
    await Promise.all([held.release(), fixed.release()]);
  },
);
