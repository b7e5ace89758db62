import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { LockService } from '../../lib/index.js';
import type { Worker } from '../support/worker.js';
import { now } from '../scenarios/history.js';
import { describeOnJvm } from './describe-jvm.js';
import type { Jvm } from './jvm.js';
import { Stage } from './stage.js';

/** ms. Without a message a waiter of either side sleeps until the lease ends. */
const LEASE = 300_000;
const SOON = LEASE / 4;

/** What becomes the name of a key or of a channel in a way of its own. */
const NAMES = [
  'order:1',
  'with spaces and\ttabs',
  'ünïcödé 鎖 🔒',
  'percent%20 plus+ "quotes" \\ $',
  '{tag}',
  'a{tag}b:c',
  'open{ brace',
  'closed} brace',
  '{}',
];

interface Granted {
  id: number;
}

describeOnJvm(
  'Redisson on a JVM and this package: a hold of one excludes the other, and its release wakes it',
  () => {
    const stage = new Stage();
    let jvm: Jvm;
    let nodes: Worker[];
    let locks: LockService;

    beforeAll(async () => {
      const { url } = await stage.open();
      locks = stage.service({ connection: url, keyPrefix: '' });
      jvm = await stage.jvm();
      nodes = await Promise.all(Array.from({ length: 4 }, () => stage.node({ leaseTime: LEASE })));
    });

    afterAll(() => stage.end());

    it('both read the same clock, in which the times of these tests are', async () => {
      const [before, there, after] = [now(), await jvm.thread('looks').now(), now()];
      expect(before).toBeLessThanOrEqual(there);
      expect(there).toBeLessThanOrEqual(after);
    });

    it.each(NAMES)(
      'a thread waits while a Node process holds, and is woken by its release: %j',
      async (name) => {
        const java = jvm.thread('waits');
        const { id } = await nodes[0]!.call<Granted>('acquire', name);
        expect(await java.isLocked(name)).toBe(true);
        expect(await java.tryLock(name)).toBe(false);
        const waits = java.lock(name);
        await stage.listeners(name);
        const released = now();
        await nodes[0]!.call('release', id);
        const granted = await waits;
        expect(granted - released).toBeLessThan(SOON);
        await java.unlock(name);
      },
    );

    it.each(NAMES)(
      'a Node process waits while a thread holds, and is woken by its unlock: %j',
      async (name) => {
        const java = jvm.thread('holds');
        await java.lock(name);
        expect(await locks.tryAcquire(name)).toBeNull();
        expect(await locks.inspect(name)).toMatchObject({ kind: 'lock', holders: [{ local: false }] });
        // Redisson listens to no requests.
        expect(await locks.requestRelease(name)).toBe(0);
        const waiter = nodes[1]!.call<{ granted: number }>('holdFor', name, {}, 0);
        await stage.listeners(name);
        const released = await java.unlock(name);
        const { granted } = await waiter;
        expect(granted - released).toBeLessThan(SOON);
      },
    );

    it('four Node processes in line behind a thread all get their turn after its unlock', async () => {
      const java = jvm.thread('holds');
      await java.lock('line');
      const line = nodes.map((node) => node.call<{ granted: number }>('holdFor', 'line', {}, 5));
      await stage.listeners('line');
      const released = await java.unlock('line');
      for (const { granted } of await Promise.all(line)) expect(granted - released).toBeLessThan(SOON);
    });

    it('threads of two JVMs in line behind a Node process all get their turn after its release', async () => {
      const threads = [jvm, await stage.jvm()].flatMap((process) => [
        process.thread('a'),
        process.thread('b'),
      ]);
      const { id } = await nodes[0]!.call<Granted>('acquire', 'threads');
      const line = threads.map(async (thread) => {
        const granted = await thread.lock('threads');
        await thread.unlock('threads');
        return granted;
      });
      await stage.listeners('threads', 2);
      const released = now();
      await nodes[0]!.call('release', id);
      for (const granted of await Promise.all(line)) expect(granted - released).toBeLessThan(SOON);
    });

    it('a thread that waits among waiting Node processes is not forgotten', async () => {
      const java = jvm.thread('waits');
      const { id } = await nodes[0]!.call<Granted>('acquire', 'mixed');
      const line = nodes.slice(1).map((node) => node.call<{ granted: number }>('holdFor', 'mixed', {}, 5));
      const thread = java.lock('mixed').then(async (granted) => {
        await java.unlock('mixed');
        return { granted };
      });
      await stage.listeners('mixed');
      const released = now();
      await nodes[0]!.call('release', id);
      for (const { granted } of await Promise.all([...line, thread]))
        expect(granted - released).toBeLessThan(SOON);
    });
  },
);
