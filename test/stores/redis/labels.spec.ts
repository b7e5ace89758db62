import { beforeAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { LockModule, LockService, type LockTimeoutError } from '../../../lib/index.js';
import { until } from '../../scenarios/until.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { serverOfAll } from '../../support/test-servers.js';

const environment = TestEnvironment.ofAll();
const server = serverOfAll();
let locks: LockService;

beforeAll(async () => {
  locks = environment.service({ connection: server.url, label: 'here' });
});

const labels = () => server.client().keys('*label*');
const errorOf = (acquiring: Promise<unknown>) =>
  acquiring.then(
    () => undefined,
    (error: unknown) => error as LockTimeoutError,
  );

describe('The label of a holder', () => {
  it('costs nothing while no hold lasts for long', async () => {
    for (let n = 0; n < 20; n++) await locks.using('short', () => undefined);
    expect(await labels()).toEqual([]);
  });

  it('is told to other processes once the hold has lasted for a second', async () => {
    const worker = await environment.worker({ url: server.url, service: { label: 'orders "7"' } });
    const asked = performance.now();
    await worker.call('acquire', 'far');
    const quick = await errorOf(locks.acquire('far', { waitTime: 0 }));
    expect(quick).toMatchObject({ code: 'LOCK_TIMEOUT' });
    if (performance.now() - asked < 1_000) expect(quick?.holderLabel).toBeUndefined();
    await until(async () => (await labels()).length > 0);
    expect((await locks.inspect('far'))?.holders).toMatchObject([{ label: 'orders "7"', local: false }]);
    // Known from now on, so that an error needs no question.
    const error = await errorOf(locks.acquire('far', { waitTime: 0 }));
    expect(error?.holderLabel).toBe('orders "7"');
    expect(error?.message).toMatch(/held by [\da-f-]+:\d+ of orders \\"7\\"$/);
    expect(error?.publicMessage).not.toContain('orders');
    expect(JSON.stringify(error?.getResponse())).not.toContain('orders');
    await worker.stop();
  });

  it('is told of those that wait, in the order of the queue', async () => {
    const [first, second] = await Promise.all(
      ['first', 'second'].map((label) => environment.worker({ url: server.url, service: { label } })),
    );
    const holding = await Promise.all([locks.acquire('queued'), locks.getFairLock('queued-fair').acquire()]);
    const queueOf = async (name: string) => (await locks.inspect(name))?.queue ?? [];
    for (const [length, worker] of [first, second].entries()) {
      void worker!.call('holdFor', 'queued', {}, 0);
      void worker!.call('holdFor', 'queued-fair', { kind: 'fair' }, 0);
      for (const { name } of holding) await until(async () => (await queueOf(name)).length > length);
    }
    const entry = { local: false, mode: 'exclusive', since: expect.any(Date) };
    for (const lease of holding) {
      await until(async () => (await queueOf(lease.name)).every(({ label }) => label !== undefined));
      expect(await queueOf(lease.name)).toMatchObject([
        { ...entry, position: 1, label: 'first' },
        { ...entry, position: 2, label: 'second' },
      ]);
      await lease.release();
    }
    await Promise.all([first!.stop(), second!.stop()]);
  });

  it('is asked for by a caller that has waited for a second in vain', async () => {
    const worker = await environment.worker({ url: server.url, service: { label: 'stock' } });
    await worker.call('acquire', 'waited-for');
    const other = environment.service({ connection: server.url });
    const error = await errorOf(other.acquire('waited-for', { waitTime: 4_000 }));
    expect(error).toMatchObject({ holderLabel: 'stock' });
    await worker.stop();
  });
});

it('A lock that is kept after its release is told as kept, by the services of its process, too', async () => {
  const lease = await locks.acquire('kept-here', { minHoldTime: 60_000 });
  await lease.release();
  for (const service of [locks, environment.service({ connection: server.url, label: 'other' })]) {
    const error = await errorOf(service.acquire('kept-here', { waitTime: 20 }));
    expect(error?.message).toMatch(new RegExp(`: kept for the minHoldTime of ${lease.owner} of here$`));
    expect(error).toMatchObject({ holder: `kept:${lease.owner}`, holderLabel: 'here' });
  }
});

it('The label is logged once at boot', async () => {
  const lines: unknown[] = [];
  const { log } = Logger.prototype;
  Logger.prototype.log = (message: unknown) => void lines.push(message);
  try {
    const module = await Test.createTestingModule({
      imports: [LockModule.forRoot({ store: 'memory', label: 'orders-1' })],
    }).compile();
    await module.init();
    await module.close();
  } finally {
    Logger.prototype.log = log;
  }
  expect(lines.filter((line) => String(line).includes('orders-1'))).toEqual(['Holds locks as "orders-1"']);
});

it.each([[''], ['  '], ['a\nb'], ['x'.repeat(101)], [5], [null]])('The label %j is refused', (label) => {
  expect(() => new LockService({ store: 'memory', label: label as string })).toThrow(/label: must be a text/);
});

it('The label of a holder is found where one node of a quorum has it', async () => {
  const nodes = await Promise.all([0, 1, 2].map(() => environment.server()));
  const url = nodes.map((node) => node.url);
  const worker = await environment.worker({ url, service: { label: 'voted for' } });
  await worker.call('acquire', 'a');
  for (const [index, node] of nodes.entries()) {
    const keys = () => node.client().keys('*label*');
    await until(async () => (await keys()).length > 0);
    if (index < 2) await node.client().del(await keys());
  }
  const other = environment.service({ nodes: url });
  await other.using('b', () => undefined);
  expect((await other.inspect('a'))?.holders).toMatchObject([{ label: 'voted for' }]);
});
