import { expect } from '@jest/globals';
import { Interval, ScheduleModule } from '@nestjs/schedule';
import { Test } from '@nestjs/testing';
import { lastValueFrom, type Observable, toArray } from 'rxjs';
import { Queue, QueueEvents } from 'bullmq';
import { io } from 'socket.io-client';
import type { LockService } from 'nestjs-distributed-lock';
import { until } from '../scenarios/until.js';
import { dataSource, locks, servers, sleep } from './preamble.js';

/** One call of what a block exports, and the locks that it is to take; `any` where it takes them at boot already. */
export type Drive = readonly [
  call: (subject: never, url: string) => unknown,
  locks: readonly string[] | 'any',
];

/** The subject is what the container gives, so its type is the caller's word. */
const drive = (call: (subject: never, url: string) => unknown, ...locks: string[]): Drive => [call, locks];

interface PriceFeed {
  readonly leading: boolean;
  onApplicationBootstrap(): void;
  beforeApplicationShutdown(): Promise<void>;
}

type Methods = Record<string, (...args: unknown[]) => Promise<unknown>>;

const get = (path: string, init?: RequestInit) => (_: unknown, url: string) =>
  fetch(`${url}${path}`, init).then((response) => {
    if (!response.ok) throw new Error(`${path} answers ${String(response.status)}`);
  });

const BUSY = { status: 'error', code: 'LOCK_TIMEOUT', message: 'The resource is busy, try again later' };

/** A queue of BullMQ, while the callback runs. */
async function withQueue(name: string, run: (queue: Queue, events: QueueEvents) => unknown): Promise<void> {
  const connection = { host: '127.0.0.1', port: Number(new URL(servers.url).port) };
  const queue = new Queue(name, { connection });
  const events = new QueueEvents(name, { connection });
  try {
    await events.waitUntilReady();
    await run(queue, events);
  } finally {
    await events.close();
    await queue.close();
  }
}

/** Timers start jobs until the modules of the application have had their hooks before the last ones. */
async function endsAllJobs(jobs: { run(job: () => Promise<unknown>): Promise<unknown> }): Promise<void> {
  let [begun, ended] = [0, 0];
  class Timers {
    @Interval(5)
    tick(): Promise<unknown> {
      begun++;
      return jobs.run(() => sleep(50).then(() => ended++));
    }
    async beforeApplicationShutdown(): Promise<void> {
      const before = begun;
      await until(() => begun > before);
    }
  }
  const provider = { provide: 'jobs', useValue: jobs };
  const imports = [ScheduleModule.forRoot()];
  const module = await Test.createTestingModule({ imports, providers: [provider, Timers] }).compile();
  const app = await module.init();
  await until(() => begun > 0);
  await app.close();
  expect(ended).toBe(begun);
}

/** What is done with each class that the pages define; one that is missing here fails. */
export const DRIVES: Readonly<Record<string, readonly Drive[]>> = {
  Orders: [drive((orders: Methods) => orders.pay!('7'), 'order:7')],
  Stock: [
    drive((stock: Methods) => stock.reserve!({ id: 7 }), 'order:7'),
    drive((stock: Methods) => stock.count!(), 'acme:Stock.count'),
    drive((stock: Methods) => stock.ship!({ items: [{ sku: 'b' }, { sku: 'a' }] }), 'stock:a', 'stock:b'),
    drive((stock: Methods) => stock.move!('1', '2'), 'from:1', 'to:2'),
    drive((stock: Methods) => stock.cancel!({ id: 7 }), 'order:7'),
    drive((stock: Methods) => stock.close!({ id: 7 }), 'acme:order:7'),
    drive((stock: Methods) => stock.pack!({ id: 7 }), 'warehouse:1'),
  ],
  Catalog: [
    drive(async (catalog: Methods) => {
      await locks.using('catalog', async () => {
        expect(await catalog.refresh!()).toBe('another refresh is running');
      });
      expect(await catalog.refresh!()).toBe('refreshed');
    }, 'catalog'),
    drive((catalog: Methods) => catalog.export!(), 'catalog:export'),
    drive(async (catalog: { prices(): Observable<number> }) => {
      expect(await lastValueFrom(catalog.prices().pipe(toArray()))).toEqual([0, 1, 2]);
    }, 'catalog:prices'),
  ],
  Carts: [drive(get('/carts/1/items', { method: 'POST', headers: { 'x-session': 'one' } }), 'cart:one')],
  Payments: [
    drive(async (payments: Methods) => {
      expect(await payments.pay!('7')).toBe('paid');
    }, 'order:7'),
  ],
  Accounts: [
    drive((accounts: Methods) => accounts.pay!('7', true), 'account:7'),
    drive((accounts: Methods) => accounts.check!('7', new AbortController().signal), 'account:7'),
  ],
  Digests: [
    drive(async (digests: Methods) => {
      expect(await digests.send!()).toBe('sent');
      expect(await digests.send!()).toBeUndefined();
    }, 'digest'),
    drive(async (digests: Methods) => {
      await digests.welcome!({ id: 7 });
      await digests.welcome!({ id: 7 });
    }, 'welcome:7'),
  ],
  Nightly: [
    drive((nightly: Methods) => nightly.cleanup!(), 'nightly:cleanup'),
    drive((nightly: Methods) => nightly.mails!(), 'nightly:mails'),
  ],
  Cleanup: [
    drive((cleanup: Methods) => cleanup.sessions!(), 'cleanup:sessions'),
    drive((cleanup: Methods) => cleanup.rebuild!(), 'uploads'),
  ],
  Invoices: [
    drive(async (invoices: Methods) => {
      expect(await invoices.send!({ id: '7' })).toBe('sent');
    }, 'invoice:7'),
  ],
  Refunds: [
    drive(async (refunds: Methods) => {
      expect(await refunds.refund!({ id: '7' })).toBe('refunded');
    }, 'refund:7'),
  ],
  Seats: [
    drive(async (_, url) => {
      const client = io(url, { transports: ['websocket'] });
      const answer = (event: string) =>
        new Promise((resolve) => {
          client.once(event, resolve);
          client.emit('reserve', { seat: 'A1' });
        });
      await locks.using('seat:A1', async () => {
        expect(await answer('exception')).toEqual(BUSY);
      });
      expect(await answer('reserved')).toBe('A1');
      client.close();
    }, 'seat:A1'),
  ],
  Transfers: [
    drive(async (_, url) => {
      const transfer = async () => {
        const body = JSON.stringify({ query: 'mutation { transfer(id: "7") }' });
        const headers = { 'content-type': 'application/json' };
        const response = await fetch(`${url}/graphql`, { method: 'POST', headers, body });
        return await response.json();
      };
      const { code, message } = BUSY;
      await locks.using('transfer:7', async () => {
        expect(await transfer()).toMatchObject({ errors: [{ message, extensions: { code } }] });
      });
      expect(await transfer()).toEqual({ data: { transfer: 'transferred' } });
    }, 'transfer:7'),
  ],
  Health: [drive(get('/health'))],
  Probes: [drive(get('/health/live')), drive(get('/health/ready'))],
  Packing: [
    drive(
      () =>
        withQueue('packing', async (queue, events) => {
          const job = await queue.add('parcel', { parcel: '7' });
          expect(await job.waitUntilFinished(events)).toBe('packed 7');
        }),
      'parcel:7',
    ),
  ],
  RunningJobs: [drive(endsAllJobs)],
  Backups: [
    drive(async (backups: Methods) => {
      expect(await backups.nightly!()).toBe('saved');
      expect(await backups.nightly!()).toBeUndefined();
    }, 'backup'),
  ],
  Inbox: [
    [
      async (inbox: { handled: string[]; beforeApplicationShutdown(): Promise<void> }) => {
        await until(() => inbox.handled.length > 1);
        await inbox.beforeApplicationShutdown();
        const { length } = inbox.handled;
        await sleep(50);
        expect(inbox.handled).toHaveLength(length);
      },
      'any',
    ],
  ],
  Reports: [
    drive(async (reports: Methods) => {
      await Promise.all([reports.nightly!(), reports.nightly!()]);
      await reports.nightly!();
    }, 'report:nightly'),
  ],
  Checkout: [
    drive(
      async (checkout: Methods) => {
        await dataSource.query('UPDATE orders SET paid = false'); // another page may have paid
        expect(await Promise.all([checkout.pay!('7'), checkout.pay!('7')])).toEqual([
          'paid',
          'was paid before',
        ]);
        expect(await dataSource.query('SELECT paid FROM orders')).toEqual([{ paid: true }]);
      },
      'order:7',
      'order:7',
    ),
  ],
  PaymentController: [drive(get('/payments/7', { method: 'POST' }), 'payment:7')],
  LockMetrics: [
    [
      async (metrics: { locks: LockService }, url) => {
        await metrics.locks.using('order:7', { label: 'order' }, () => undefined);
        const text = await (await fetch(`${url}/metrics`)).text();
        expect(text).toContain('lock_events_total{label="order",type="acquired"} 1');
        expect(text).toContain('lock_wait_seconds_count{label="order"} 1');
        expect(text).not.toContain('order:7');
      },
      'any',
    ],
  ],
  ShipOrderHandler: [drive((handler: Methods) => handler.execute!({ orderId: '7' }), 'order:7')],
  Shipping: [
    drive(async (shipping: Methods) => {
      expect(await shipping.ship!('7')).toBe('shipped 7');
    }, 'order:7'),
  ],
  MoneyController: [
    drive(
      async (_, url) => {
        const post = async (body: object) => {
          const headers = { 'content-type': 'application/json' };
          return (await fetch(`${url}/money`, { method: 'POST', headers, body: JSON.stringify(body) }))
            .status;
        };
        const [from, to] = ['b', 'a'].map((digit) => `${digit.repeat(8)}-0000-4000-8000-000000000000`);
        expect(await post({ from, to: 'mine' })).toBe(400);
        expect(await post({ from, to })).toBe(201);
      },
      ...['a', 'b'].map((digit) => `account:${digit.repeat(8)}-0000-4000-8000-000000000000`),
    ),
  ],
  Mails: [
    drive(
      () =>
        withQueue('mails', async (queue, events) => {
          const job = await locks.using('mail:7', async () => {
            const again = { attempts: 20, backoff: { type: 'exponential', delay: 500 } }; // as on the page
            const busy = await queue.add('mail', { customer: '7' }, again);
            await until(async () => (await busy.getState()) === 'delayed');
            return (await queue.getJob(busy.id!))!;
          });
          expect(job.failedReason).toMatch(/^The lock "mail:7" is busy after a wait of \d+ ms: held by /);
          expect(await job.waitUntilFinished(events)).toBe('sent to 7');
        }),
      'mail:7',
    ),
  ],
  // The worker of another application may get the job.
  Exports: [
    [
      (_, url) =>
        withQueue('exports', async (queue, events) => {
          const post = async (path: string) => {
            const response = await fetch(`${url}/exports/${path}`, { method: 'POST' });
            return { status: response.status, body: (await response.json()) as Record<string, string> };
          };
          const { body } = await post('7');
          expect((await post('7')).status).toBe(409);
          const job = (await queue.getJob(body.id!))!;
          await job.waitUntilFinished(events);
          expect((await post('7')).status).toBe(409);
          expect((await post(`jobs/${body.id!}/confirmation`)).body).toEqual({ published: 'export:7' });
          expect((await post(`jobs/${body.id!}/confirmation`)).status).toBe(500);
          expect((await post('8')).status).toBe(201);
        }),
      'any',
    ],
  ],
  ExportWorker: [
    drive(() =>
      withQueue('exports', async (queue, events) => {
        const job = await queue.add('export', { ticket: 'none' });
        await expect(job.waitUntilFinished(events)).rejects.toThrow('lease.handOver() has given');
      }),
    ),
  ],
  Letters: [
    drive(
      () =>
        withQueue('letters', async (queue, events) => {
          const job = await locks.using('letter:7', async () => {
            const delayed = await queue.add('letter', { customer: '7' });
            await until(async () => (await delayed.getState()) === 'delayed');
            return delayed;
          });
          expect(await job.waitUntilFinished(events)).toBe('printed for 7');
          const { attemptsMade } = (await queue.getJob(job.id!))!;
          expect(attemptsMade).toBe(1);
        }),
      'letter:7',
    ),
  ],
  Statements: [
    drive(async (statements: Methods) => {
      await Promise.all([statements.daily!(), statements.daily!()]);
      await statements.daily!();
      expect(await locks.tryAcquire('statements:daily')).toBeNull();
    }, 'statements:daily'),
    drive((statements: Methods) => statements.hourly!(), 'statements:hourly'),
  ],
  Reconciliation: [
    drive((jobs: Methods) => jobs.reconcile!(), 'reconcile'),
    drive((jobs: Methods) => jobs.daily!(), 'reconcile:daily'),
  ],
  PriceFeed: [
    [
      async (feed: PriceFeed) => {
        const other = new (feed.constructor as new (service: LockService) => PriceFeed)(locks);
        await until(() => feed.leading);
        other.onApplicationBootstrap();
        // Its lease is lost, and the first of those that wait is elected.
        await locks.forceRelease('price-feed');
        await until(() => other.leading && !feed.leading);
        await other.beforeApplicationShutdown();
        expect(other.leading).toBe(false);
        await until(() => feed.leading);
      },
      'any',
    ],
  ],
  SearchIndex: [
    [
      async (index: Methods & { pages: number }) => {
        await until(() => index.pages > 2);
        expect(await index.compact!()).toBe('compacted');
        await locks.forceRelease('search-index');
        const { pages } = index;
        await until(() => index.pages > pages + 2);
      },
      'any',
    ],
  ],
  ElectionHealth: [
    [
      async (_, url) => {
        const check = async () => (await fetch(`${url}/health/search-index`)).status;
        expect(await check()).toBe(503);
        await locks.getElection('search-index').run(async () => {
          expect(await check()).toBe(200);
        });
      },
      'any',
    ],
  ],
  Ledger: [
    drive(
      async (ledger: Methods) => {
        const outcomes = await Promise.allSettled([ledger.pay!(), ledger.cancel!()]);
        const errors = outcomes.map((outcome) =>
          outcome.status === 'rejected' ? (outcome.reason as unknown) : undefined,
        );
        expect(errors).toEqual([
          undefined,
          expect.objectContaining({
            message: expect.stringMatching(
              /^The lock "order:7" is busy after a wait of \d+ ms: deadlock, .* waits for "order:7", .* waits for "stock:7"$/,
            ),
          }),
        ]);
      },
      'order:7',
      'stock:7',
      'stock:7',
    ),
  ],
  OperatorGuard: [
    drive(async (_, url) => {
      const ask = (user: string) =>
        fetch(`${url}/locks`, {
          headers: { authorization: `Basic ${Buffer.from(user).toString('base64')}` },
        });
      expect((await ask('eve:')).status).toBe(401);
      // Without a password nobody is let in.
      expect((await ask('ada:')).status).toBe(401);
      process.env.BOARD_PASSWORD = 'secret';
      const page = await ask('ada:secret');
      delete process.env.BOARD_PASSWORD;
      expect(page.status).toBe(200);
      expect(await page.text()).toContain('"writable":true');
    }),
  ],
  Bookings: [
    drive(
      (bookings: Methods) => Promise.all([bookings.pay!('7'), bookings.cancel!('7')]),
      'order:7',
      'order:7',
      'stock:7',
      'stock:7',
    ),
  ],
};
