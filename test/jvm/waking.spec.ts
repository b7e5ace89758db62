import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { Worker } from '../support/worker.js';
import { now } from '../scenarios/history.js';
import { describeOnJvm } from './describe-jvm.js';
import type { Jvm } from './jvm.js';
import { Stage } from './stage.js';

/** ms. Without a message a waiter of either side sleeps until the lease ends. */
const LEASE = 300_000;
const SOON = LEASE / 4;

/** What becomes a channel's name in a way of its own. */
const NAMES = [
  'order:1',
  'with spaces',
  'ünïcödé 鎖 🔒',
  '{tag}',
  'a{tag}b:c',
  'open{ brace',
  'closed} brace',
  '{}',
];

interface Granted {
  id: number;
}

describeOnJvm('Redisson on a JVM and this package: a release of one wakes the other', () => {
  const stage = new Stage();
  let jvm: Jvm;
  let nodes: Worker[];

  beforeAll(async () => {
    jvm = await stage.jvm();
    nodes = await Promise.all(Array.from({ length: 4 }, () => stage.node({ leaseTime: LEASE })));
  });

  afterAll(() => stage.end());

  it.each(NAMES)('a waiting thread is woken by the release of a Node process: %j', async (name) => {
    const java = jvm.thread('waits');
    const { id } = await nodes[0]!.call<Granted>('acquire', name);
    const waits = java.lock(name);
    await stage.listeners(name);
    const released = now();
    await nodes[0]!.call('release', id);
    const granted = await waits;
    expect(granted - released).toBeLessThan(SOON);
    await java.unlock(name);
  });

  it.each(NAMES)('a waiting Node process is woken by the unlock of a thread: %j', async (name) => {
    const java = jvm.thread('holds');
    await java.lock(name);
    const waiter = nodes[1]!.call<{ granted: number }>('holdFor', name, {}, 0);
    await stage.listeners(name);
    const released = await java.unlock(name);
    const { granted } = await waiter;
    expect(granted - released).toBeLessThan(SOON);
  });

  it('four Node processes in line behind a thread all get their turn after its unlock', async () => {
    const java = jvm.thread('holds');
    await java.lock('line');
    const line = nodes.map((node) => node.call<{ granted: number }>('holdFor', 'line', {}, 5));
    await stage.listeners('line');
    const released = await java.unlock('line');
    for (const { granted } of await Promise.all(line)) expect(granted - released).toBeLessThan(SOON);
  });

  it('threads of two JVMs in line behind a Node process all get their turn after its release', async () => {
    const threads = [jvm, await stage.jvm()].flatMap((process) => [process.thread('a'), process.thread('b')]);
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
});
