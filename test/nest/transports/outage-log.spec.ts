import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { type ArgumentsHost, Logger } from '@nestjs/common';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { LockExceptionFilter, LockLostError, LockUnavailableError } from '../../../lib/index.js';

const lines: unknown[][] = [];

beforeEach(() => {
  jest.useFakeTimers();
  lines.length = 0;
  const put =
    (level: string) =>
    (...[line]: unknown[]) => {
      lines.push([level, line]);
    };
  Logger.overrideLogger({ log: put('log'), error: put('error'), warn: put('warn') });
});

afterEach(() => {
  Logger.overrideLogger(false);
  jest.useRealTimers();
});

/** As Nest, for a message. */
const host = (): ArgumentsHost => {
  const made = new ExecutionContextHost([]);
  made.setType('rpc');
  return made;
};

const away = (name: string) =>
  new LockUnavailableError(name, { cause: new Error('not connected', { cause: new Error('ECONNREFUSED') }) });

it('tells one line of an outage, without a stack, and at its end how many calls had no lock', () => {
  const filter = new LockExceptionFilter();
  for (let call = 0; call < 300; call++) {
    filter.catch(away(`order:${String(call)}`), host());
    jest.advanceTimersByTime(100);
  }
  const first = ['error', 'Locks are unavailable, first for "order:0": not connected: ECONNREFUSED'];
  expect(lines).toEqual([first]);
  jest.advanceTimersByTime(30_000);
  expect(lines).toEqual([first, ['log', 'Locks were unavailable to 300 calls within 29.9 s']]);

  // The next one is told again, and a single call is not counted.
  filter.catch(away('order:0'), host());
  jest.advanceTimersByTime(60_000);
  expect(lines.slice(2)).toEqual([first]);
});

it('tells of a lost lease each time', () => {
  const filter = new LockExceptionFilter();
  const lost = new LockLostError('order:7', { owner: 'a:1', reason: 'expired' });
  for (let call = 0; call < 2; call++) filter.catch(lost, host());
  expect(lines).toEqual([
    ['error', lost],
    ['error', lost],
  ]);
});
