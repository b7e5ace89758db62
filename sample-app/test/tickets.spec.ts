import { afterEach, describe, expect, it } from '@jest/globals';
import type { INestApplication } from '@nestjs/common';
import { LockService } from 'nestjs-distributed-lock';
import { makeLockBusy } from 'nestjs-distributed-lock/testing';
import type { ShopOptions } from '../src/app.module.js';
import { rush } from '../src/demo/rush.js';
import { openShop } from './open-shop.js';

describe('the ticket shop', () => {
  const seats = 10;
  let app: INestApplication;
  afterEach(async () => {
    await app.close();
  });

  /** @returns its URL */
  async function open(options: ShopOptions & { seats?: number } = {}): Promise<string> {
    const opened = await openShop({ seats, paymentTime: 20, ...options });
    ({ app } = opened);
    return opened.url;
  }

  const soldBy = async (url: string, path: string) => {
    const answers = await rush([url], path, 3 * seats);
    return answers.filter(({ status }) => status === 201).length;
  };

  it('oversells without the lock', async () => {
    expect(await soldBy(await open(), 'buy-unlocked')).toBeGreaterThan(seats);
  });

  it('sells each seat once with the lock', async () => {
    const url = await open();
    expect(await soldBy(url, 'buy')).toBe(seats);
    expect(await (await fetch(`${url}/seats`)).json()).toEqual({ show: 'tonight', seats, sold: seats });
  });

  it('sells again after a reset', async () => {
    const url = await open({ seats: 1 });
    expect(await rush([url], 'buy', 1)).toMatchObject([{ status: 201 }]);
    expect(await rush([url], 'buy', 1)).toMatchObject([{ status: 410 }]);
    expect(await rush([url], 'reset', 1)).toMatchObject([{ status: 200 }]);
    expect(await rush([url], 'buy', 1)).toMatchObject([{ status: 201 }]);
  });

  it('answers 409 when the lock stays busy', async () => {
    const url = await open({ waitTime: 20 });
    const busy = await makeLockBusy(app.get(LockService).getLock('show:tonight'));
    expect(await rush([url], 'buy', 1)).toMatchObject([{ status: 409 }]);
    await busy.release();
    expect(await rush([url], 'buy', 1)).toMatchObject([{ status: 201 }]);
  });

  it('answers 503 when Redis cannot be reached', async () => {
    const url = await open({ redisUrl: 'redis://127.0.0.1:1', waitTime: 20 });
    expect(await rush([url], 'buy', 1)).toMatchObject([{ status: 503 }]);
    expect(await rush([url], 'buy-unlocked', 1)).toMatchObject([{ status: 503 }]);
  });
});
