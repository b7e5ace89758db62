import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from '@jest/globals';
import type { INestApplication } from '@nestjs/common';
import { LockService } from 'nestjs-distributed-lock';
import { until } from '../../test/scenarios/until.js';
import { answered, nextRequest } from '../../test/support/requests.js';
import { RushService, type RushState } from '../src/rush/rush.service.js';
import { TicketsService } from '../src/tickets/tickets.service.js';
import { openShop } from './open-shop.js';

describe('the page of the ticket shop', () => {
  let app: INestApplication;
  afterEach(async () => {
    await app.close();
  });

  async function open(): Promise<string> {
    const opened = await openShop({ seats: 10, paymentTime: 10 });
    ({ app } = opened);
    return opened.url;
  }

  const start = (url: string, locked: boolean) =>
    fetch(`${url}/rush`, {
      method: 'POST',
      body: new URLSearchParams({ buyers: '30', locked: String(locked) }),
    });
  const stateOf = async (url: string) => (await (await fetch(`${url}/rush/state`)).json()) as RushState;
  async function ended(url: string) {
    await until(async () => (await stateOf(url)).rush?.running === false);
    return await stateOf(url);
  }

  it('sells each seat once to the buyers of a rush that stand in line, and one rush at a time', async () => {
    const url = await open();
    // A buyer of another instance, for whom the line waits as long as the test looks at it.
    const lease = await app.get(LockService, { strict: false }).acquire('show:tonight');
    expect((await start(url, true)).status).toBe(202);
    await until(async () => (await stateOf(url)).waitingHere > 1);
    expect((await stateOf(url)).holder).toEqual(expect.any(String));
    expect((await start(url, true)).status).toBe(409);
    // The board has the line as well, without a script.
    const board = await (await fetch(`${url}/locks`)).text();
    expect(board).toContain('show:tonight');
    expect(Number(/class="count">(\d+)/.exec(board)?.[1])).toBeGreaterThan(1);
    await lease.release();
    const { rush, sold } = await ended(url);
    expect(rush?.tally).toEqual({ bought: 10, soldOut: 20, busy: 0, failed: 0 });
    expect([rush?.seats, sold]).toEqual([Array.from({ length: 10 }, () => 1), 10]);
  });

  it('sells a seat several times where they do not', async () => {
    const url = await open();
    await start(url, false);
    const { rush } = await ended(url);
    expect(Math.max(...(rush?.seats ?? []))).toBeGreaterThan(1);
  });

  it('goes on after a rush that could not begin', async () => {
    const url = await open();
    const tickets = app.get(TicketsService, { strict: false });
    tickets.reset = () => Promise.reject(new Error('no connection'));
    expect((await start(url, true)).status).toBe(500);
    expect((await stateOf(url)).rush).toBeNull();
    Reflect.deleteProperty(tickets, 'reset');
    expect((await start(url, true)).status).toBe(202);
    await ended(url);
  });

  it('joins the line of another instance, and frees no seat meanwhile', async () => {
    const url = await open();
    const tickets = app.get(TicketsService, { strict: false });
    await tickets.buy();
    // The buyer of another instance that pays.
    const lease = await app.get(LockService, { strict: false }).acquire('show:tonight');
    expect((await start(url, true)).status).toBe(202);
    expect((await stateOf(url)).sold).toBe(1);
    await lease.release();
    const { rush, sold } = await ended(url);
    expect([rush?.tally.bought, sold]).toEqual([9, 10]);
    await start(url, true);
    expect((await ended(url)).rush?.tally.bought).toBe(10);
  });

  it('does not keep the shop from closing', async () => {
    const url = await open();
    const rushes = app.get(RushService, { strict: false });
    const state = rushes.state.bind(rushes);
    rushes.state = async () => {
      await sleep(100);
      return await state();
    };
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const ask = () => answered(`${url}/rush/state`, agent);
    const asked = nextRequest(app.getHttpServer());
    const first = ask();
    await asked;
    const outcome = { closed: false };
    const closing = app.close().then(() => {
      outcome.closed = true;
    });
    await first;
    for (let n = 0; n < 20 && !outcome.closed; n++) await ask().catch(() => sleep(100));
    expect(outcome.closed).toBe(true);
    agent.destroy();
    await closing;
  });

  it.each([{ buyers: 'many', locked: 'true' }, { buyers: '1', locked: 'maybe' }, {}])(
    'refuses %j',
    async (body) => {
      const url = await open();
      const answer = await fetch(`${url}/rush`, { method: 'POST', body: new URLSearchParams({ ...body }) });
      expect(answer.status).toBe(400);
    },
  );

  it('is where a browser goes, with all that it loads', async () => {
    const url = await open();
    const page = await fetch(url, { headers: { accept: 'text/html,*/*' } });
    expect([page.url, page.headers.get('content-type')]).toEqual([`${url}/rush`, 'text/html; charset=utf-8']);
    expect((await fetch(`${url}/rush/?a`)).url).toBe(`${url}/rush`);
    const loaded = [...(await page.text()).matchAll(/(?:src|href)="([\w/.]+)"/g)].map(
      ([, path = '']) => path,
    );
    const answers = await Promise.all(loaded.map((path) => fetch(new URL(path, page.url))));
    expect(answers.map(({ status }) => status)).toEqual(loaded.map(() => 200));
  });
});
