import { expect } from '@jest/globals';
import { lastValueFrom, type Observable, toArray } from 'rxjs';
import { io } from 'socket.io-client';
import { locks } from './preamble.js';

/** One call of what a block exports, and the locks that it is to take. */
export type Drive = readonly [call: (subject: never, url: string) => unknown, locks: readonly string[]];

/** The subject is what the container gives, so its type is the caller's word. */
const drive = (call: (subject: never, url: string) => unknown, ...locks: string[]): Drive => [call, locks];

type Methods = Record<string, (...args: unknown[]) => Promise<unknown>>;

const get = (path: string, init?: RequestInit) => (_: unknown, url: string) =>
  fetch(`${url}${path}`, init).then((response) => {
    if (!response.ok) throw new Error(`${path} answers ${String(response.status)}`);
  });

const BUSY = { status: 'error', code: 'LOCK_TIMEOUT', message: 'The resource is busy, try again later' };

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
  Reports: [
    drive(async (reports: Methods) => {
      await Promise.all([reports.nightly!(), reports.nightly!()]);
      await reports.nightly!();
    }, 'report:nightly'),
  ],
};
