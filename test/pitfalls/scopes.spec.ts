/**
 * Who runs in whose scope. The numbers are those of a list of verified defects of lock libraries; what is tested is
 * that ours does not have them.
 *
 * 44  Code that happens to run in a lock's async context (a server's requests, a stream's subscribers, listeners)
 *     shares that lock's owner.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from '@jest/globals';
import type { Lease } from '../../lib/index.js';
import { Entries } from '../doubles/entries.js';
import { Stage, until } from './stage.js';

const stage = Stage.set();

it('lets the requests of a server compete that a lock holder has started (pitfall 44)', async () => {
  const locks = stage.service();
  const entries = new Entries();
  await locks.using('leader', async () => {
    const server = createServer((request, response) => {
      const handle = async () => {
        const lease = await locks.acquire('order:7');
        await entries.visit(undefined, request.url, 50);
        await lease.release();
        response.end();
      };
      void handle();
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const url = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}/`;
    const first = fetch(url);
    // The others come while the first one holds the lock.
    await until(() => entries.total === 1);
    await Promise.all([first, fetch(url), fetch(url)]);
    server.close();
  });
  expect(entries).toMatchObject({ total: 3, most: 1 });
});

it('lets a listener compete that is told of a lock in the scope of another (pitfall 44)', async () => {
  const locks = stage.service();
  const asked: Promise<Lease | null>[] = [];
  locks.events$.subscribe((event) => {
    if (event.type === 'acquired' && event.name === 'job') asked.push(locks.tryAcquire('account:7'));
  });
  await locks.using('account:7', async () => {
    await locks.using('job', () => 1);
    expect(await Promise.all(asked)).toEqual([null]);
  });
});
