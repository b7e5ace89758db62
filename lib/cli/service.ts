import { Logger } from '@nestjs/common';
import { now, timerAt } from '../client/holding/deadline.js';
import { LockUnavailableError } from '../api/errors.js';
import type { LockModuleOptions } from '../api/options.js';
import { LockService } from '../module/lock-service.js';
import type { Given } from './given.js';
import { connectionOf } from './connection.js';
import { reasonOf } from './failure.js';

/** ms: how long a command waits for Redis unless `--timeout` says otherwise. */
const TIMEOUT = 5_000;

/** @throws Failure for a wrong address, LockConfigError for a wrong option */
export function openService(given: Given, options: LockModuleOptions = {}): LockService {
  // What its events tell would be told twice: this program ends with a line of its own.
  Logger.overrideLogger(false);
  return new LockService({ ...connectionOf(given, given.environment), ...options });
}

/**
 * The answer to one question, after which the connections are closed.
 * @throws LockUnavailableError when there is none within `--timeout`
 */
export async function ask<T>(
  given: Given,
  question: (service: LockService) => Promise<T>,
  { usual = TIMEOUT, options = {} }: { usual?: number; options?: LockModuleOptions } = {},
): Promise<T> {
  const timeout = given.time('timeout', usual, 1);
  const service = openService(given, options);
  const outages = outagesOf(service);
  try {
    return await answerWithin(timeout, question(service), outages);
  } finally {
    // A server that is silent would be waited for.
    void service.close().catch(() => undefined);
  }
}

/** The nodes without a connection by now, and why: a question may end before the service itself gives up. */
function outagesOf({ events$ }: LockService): ReadonlyMap<string, string> {
  const outages = new Map<string, string>();
  events$.subscribe((event) => {
    if (event.type === 'disconnected' && event.error !== undefined)
      outages.set(event.node, reasonOf(event.error));
    if (event.type === 'reconnected') outages.delete(event.node);
  });
  return outages;
}

/**
 * @param outages the reasons that are known, by node
 * @throws LockUnavailableError
 */
export function answerWithin<T>(
  timeout: number,
  answer: Promise<T>,
  outages: ReadonlyMap<string, string> = new Map(),
): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = timerAt(now() + timeout, () => {
      const known = [...outages].map(([node, reason]) => `; ${node} ${reason}`).join('');
      const cause = new Error(`no answer within ${String(timeout)} ms${known}`);
      reject(new LockUnavailableError(undefined, { cause }));
    });
    answer.then(resolve, reject).finally(() => {
      clearTimeout(timer);
    });
  });
}
