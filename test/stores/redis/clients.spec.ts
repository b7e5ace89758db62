import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import type { Redis } from 'ioredis';
import { commandClient } from '../../../lib/stores/redis/clients.js';

let client: Redis;

beforeEach(() => {
  jest.useFakeTimers();
  client = commandClient('redis://127.0.0.1:1', 30_000);
});

afterEach(() => {
  client.disconnect();
  jest.useRealTimers();
});

it('the pauses between attempts to connect grow, also where each connection is lost as soon as it is ready', () => {
  const pause = (attempt: number) => client.options.retryStrategy?.(attempt);
  const pauses = Array.from({ length: 12 }, () => pause(1));
  expect(pauses).toEqual([50, 100, 150, 200, 250, 300, 350, 400, 450, 500, 500, 500]);
  jest.advanceTimersByTime(1_600);
  expect(pause(1)).toBe(50);
  expect(pause(7)).toBe(350);
});
