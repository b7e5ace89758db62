/**
 * Work of other requests in a lock's async context. The number is that of a list of verified defects of lock libraries;
 * what is tested is that ours tells of it, and has a way out.
 *
 * 77  A shared queue, pool or batch, or a connection that was opened under the lock, starts another request's work in the
 *     holder's async context, which then re-enters the lock: two inside, one token.
 */
import 'reflect-metadata';
import { AsyncResource } from 'node:async_hooks';
import { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Controller, type INestMicroservice } from '@nestjs/common';
import { type ClientProxy, ClientProxyFactory, MessagePattern, Transport } from '@nestjs/microservices';
import { Test } from '@nestjs/testing';
import Bottleneck from 'bottleneck';
import fastq from 'fastq';
import PQueue from 'p-queue';
import { concatMap, lastValueFrom, mergeMap, type OperatorFunction, Subject } from 'rxjs';
import type { AcquireOptions, LockEvent } from '../../lib/index.js';
import { deferred } from '../doubles/deferred.js';
import { freePort } from '../nest/transports/free-port.js';
import { startMicroservice } from '../nest/transports/shop.js';
import { Stage, until } from './stage.js';

type Task = () => Promise<void>;
/** Runs the tasks of all requests. */
type Queue = (task: Task) => Promise<void>;

const stage = Stage.set();

@Controller()
class Bank {
  @MessagePattern('ask')
  ask() {
    return 'yes';
  }
}

let bank: INestMicroservice;
let port: number;
const clients: ClientProxy[] = [];

beforeAll(async () => {
  port = await freePort();
  const module = await Test.createTestingModule({ controllers: [Bank] }).compile();
  bank = await startMicroservice(module, { transport: Transport.TCP, options: { port } });
});

afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
});

afterAll(async () => {
  await bank.close();
});

/** A client of Nest that all requests share. It connects with its first message. */
function bankClient(): ClientProxy {
  const client = ClientProxyFactory.create({ transport: Transport.TCP, options: { port } });
  clients.push(client);
  return client;
}

/** Runs the task by an operator that the answer of the bank starts. */
const afterAnswer = (client: ClientProxy) => (task: Task) =>
  lastValueFrom(client.send('ask', '').pipe(mergeMap(task)));

/** A Subject of tasks that all requests share, and an operator that runs them one at a time. */
function subjectOf(oneAtATime: (run: (task: Task) => Promise<void>) => OperatorFunction<Task, void>): Queue {
  const tasks = new Subject<Task>();
  tasks.pipe(oneAtATime((task) => task())).subscribe();
  return (task) =>
    new Promise((resolve, reject) => {
      tasks.next(() => task().then(resolve, reject));
    });
}

/** A generator of all requests, each of which gives it a task. */
async function* runEach(): AsyncGenerator<undefined, never, Task> {
  for (;;) {
    const task = yield;
    await task();
  }
}

/** The parts of Node and the libraries of docs/guide/reentrancy.md that are installed here. */
const starters: [string, () => Queue][] = [
  [
    'p-queue',
    () => {
      const queue = new PQueue({ concurrency: 1 });
      return (task) => queue.add(task);
    },
  ],
  [
    'Bottleneck',
    () => {
      const queue = new Bottleneck({ maxConcurrent: 1 });
      return (task) => queue.schedule(task);
    },
  ],
  [
    'fastq',
    () => {
      const queue = fastq.promise((task: Task) => task(), 1);
      return (task) => queue.push(task);
    },
  ],
  ['concatMap', () => subjectOf((run) => concatMap(run))],
  ['mergeMap with a limit', () => subjectOf((run) => mergeMap(run, 1))],
  [
    'an async generator',
    () => {
      const generator = runEach();
      void generator.next();
      return async (task) => {
        await generator.next(task);
      };
    },
  ],
  [
    'a Writable',
    () => {
      const write = (task: Task, _: string, done: (error?: Error) => void) => {
        task().then(() => {
          done();
        }, done);
      };
      const stream = new Writable({ objectMode: true, write });
      return (task) =>
        new Promise((resolve, reject) => {
          stream.write(task, (error) => {
            if (error) reject(error);
            else resolve();
          });
        });
    },
  ],
  [
    'a WritableStream',
    () => {
      const writer = new WritableStream<Task>({ write: (task) => task() }).getWriter();
      return (task) => writer.write(task);
    },
  ],
  ['an answer to a ClientProxy', () => afterAnswer(bankClient())],
];

type Locks = ReturnType<typeof stage.service>;

/** Another request adds its task as it is, or with one of the cures of the guide. */
const cures: [string, AcquireOptions, (locks: Locks, task: Task) => Task][] = [
  ['reentrant: false', { reentrant: false }, (_, task) => task],
  ['runInScope', {}, (locks, task) => () => locks.runInScope(task)],
  ['AsyncResource.bind', {}, (_, task) => AsyncResource.bind(task)],
];

/**
 * A request pays under a lock and calls its bank through the queue. Meanwhile another request adds a refund of the same
 * account, which goes on until the payment has ended.
 * @returns how many were inside at most, and the tokens of all that entered
 */
async function payAndRefund(
  locks: Locks,
  queue: Queue,
  options: AcquireOptions,
  added: (locks: Locks, task: Task) => Task,
) {
  let [inside, most] = [0, 0];
  const tokens: number[] = [];
  const asked = deferred();
  const [isPaying, mayEnd] = [deferred(), deferred()];
  const enter = async (token: number, work: Task): Promise<void> => {
    tokens.push(token);
    most = Math.max(most, ++inside);
    await work();
    inside--;
  };
  const pay = () =>
    locks.using('account:7', { ...options, label: 'pay' }, (lease) =>
      enter(lease.fencingToken, async () => {
        await queue(async () => {
          isPaying.resolve();
          await asked.promise;
        });
        await mayEnd.promise;
      }),
    );
  const refund = async (): Promise<void> => {
    // Whether it re-enters is known when it has asked.
    const refunded = locks.using('account:7', { ...options, label: 'refund' }, (lease) =>
      enter(lease.fencingToken, () => paid.then(() => settled)),
    );
    mayEnd.resolve();
    await refunded;
  };
  const paid = pay();
  // When what the end of the payment leaves has come to its end.
  const settled = paid.then(() => sleep(50));
  await isPaying.promise;
  const refunded = queue(added(locks, refund));
  // Some queues look several times whether they may start a task that was added, in the context of its caller.
  for (let turns = 0; turns < 20; turns++) await sleep(1);
  asked.resolve();
  await Promise.all([paid, refunded]);
  return { most, tokens: new Set(tokens).size };
}

describe.each(starters)(
  'what requests share and starts their work, as %s (pitfall 77)',
  (_name, makeQueue) => {
    it('starts work of another request inside of the lock, which is an event and one warning', async () => {
      const locks = stage.service();
      const events: LockEvent[] = [];
      locks.events$.subscribe((event) => events.push(event));
      for (let round = 0; round < 2; round++) {
        expect(await payAndRefund(locks, makeQueue(), {}, (_, task) => task)).toEqual({ most: 2, tokens: 1 });
      }
      const place = expect.stringMatching(/shared-queues\.spec\.ts:\d+:\d+$/) as unknown;
      const outlived = events.filter(({ type }) => type === 'outlived');
      expect(outlived).toHaveLength(2);
      expect(outlived[0]).toMatchObject({ name: 'account:7', label: 'refund', at: place, outerLabel: 'pay' });
      expect(outlived[0]).toMatchObject({ outerAt: place });
      const warnings = events.filter((event) => event.type === 'warning' && event.code === 'lease-outlived');
      expect(warnings).toHaveLength(1);
      expect(warnings[0]).toMatchObject({ message: expect.stringContaining('reentrant: false') as unknown });
    });

    it.each(cures)('lets one in at a time with %s', async (_, options, added) => {
      const locks = stage.service();
      const events: LockEvent[] = [];
      locks.events$.subscribe((event) => events.push(event));
      expect(await payAndRefund(locks, makeQueue(), options, added)).toEqual({ most: 1, tokens: 2 });
      expect(events.map(({ type }) => type)).not.toContain('outlived');
    });
  },
);

describe('An answer to a ClientProxy starts no work inside of a lock (pitfall 77)', () => {
  const asAdded = (_: Locks, task: Task) => task;

  it('if the client was connected at boot', async () => {
    const client = bankClient();
    await client.connect();
    expect(await payAndRefund(stage.service(), afterAnswer(client), {}, asAdded)).toEqual({
      most: 1,
      tokens: 2,
    });
  });
});

it('tells nothing of calls that are nested (pitfall 77)', async () => {
  const locks = stage.service();
  const events: LockEvent[] = [];
  locks.events$.subscribe((event) => events.push(event));
  const nested = (depth: number): Promise<unknown> =>
    locks.using('account:7', () =>
      depth === 0 ? undefined : Promise.all([nested(depth - 1), nested(depth - 1)]),
    );
  await nested(4);
  await locks.using('account:7', async () => {
    const again = await locks.acquire('account:7');
    await again.release();
  });
  await locks.using('next', () => 1);
  await until(() => events.filter(({ type }) => type === 'released').length === 3);
  expect(events.map(({ type }) => type)).not.toContain('outlived');
});

it('tells nothing of the leases of one scope, which end in any order (pitfall 77)', async () => {
  const locks = stage.service();
  const events: LockEvent[] = [];
  locks.events$.subscribe((event) => events.push(event));
  await locks.runInScope(async () => {
    const leases = [await locks.acquire('a'), await locks.acquire('a')];
    await leases[0]?.release();
    await sleep(10);
    await leases[1]?.release();
    const around = await locks.acquire('b');
    const branches = [1, 30].map((time) => locks.using('b', () => sleep(time)));
    await around.release();
    await Promise.all(branches);
  });
  expect(events.map(({ type }) => type)).not.toContain('outlived');
});

it('knows no deadlock with the work of another request that is bound to its own context (pitfall 77)', async () => {
  const locks = stage.service();
  const events: LockEvent[] = [];
  locks.events$.subscribe((event) => events.push(event));
  const queue = new PQueue({ concurrency: 1 });
  const [isPaying, mayEnd, isWaiting] = [deferred(), deferred(), deferred()];
  const paid = locks.using('account', async () => {
    await queue.add(async () => {
      isPaying.resolve();
      await mayEnd.promise;
    });
    await isWaiting.promise;
    // Deadlocks within a process are found after 20 ms.
    await sleep(200);
  });
  await isPaying.promise;
  // The next task of the queue, in the context of the payment without the cure, waits for the stock.
  const added = queue.add(
    AsyncResource.bind(() => {
      const packed = locks.using('stock', () => 'packed');
      isWaiting.resolve();
      return packed;
    }),
  );
  // A third request has the stock, and waits for the account.
  const moved = locks.using('stock', async () => {
    const both = locks.using('account', () => 'moved');
    mayEnd.resolve();
    return await both;
  });
  expect(await Promise.all([paid, added, moved])).toEqual([undefined, 'packed', 'moved']);
  expect(events.filter(({ type }) => type === 'deadlock' || type === 'lock-order')).toEqual([]);
});
