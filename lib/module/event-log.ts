import type { Logger } from '@nestjs/common';
import type { UnusualEvent } from '../client/event-stream.js';
import type { LockClient } from '../client/lock-client.js';
import { Seen } from '../client/seen.js';
import { because, describeAsker } from '../api/asker.js';
import { describeCycle } from '../api/deadlock.js';
import { describeConflict } from '../api/lock-order.js';
import { inQuotes, onOneLine } from '../runtime/text.js';

/** Logs the unusual events of a client. One request for a release is logged once, for all holders that it asks. */
export function logEvents({ events, returns }: LockClient, logger: Logger): void {
  const requests = new Seen();
  events.unusual.subscribe((event) => {
    if (event.type === 'release-requested' && !requests.add(event.request)) return;
    logEvent(logger, event, returns.ranOut.has(event));
  });
}

/**
 * One line per event that matters to an operator.
 * @param ranOut a fixed lease has come to the end that its caller had chosen
 */
export function logEvent(
  logger: Pick<Logger, 'log' | 'warn' | 'error'>,
  event: UnusualEvent,
  ranOut: boolean,
): void {
  switch (event.type) {
    case 'lost':
      logger[ranOut ? 'warn' : 'error'](
        `Lost the lock "${inQuotes(event.name)}" (owner ${event.owner}): ${event.reason}` +
          (event.forced === undefined ? '' : `, taken away by ${describeAsker(event.forced)}`),
      );
      break;
    case 'release-requested':
      logger.log(
        // One line stands for all holders of this service that one request asks.
        event.holders > 1
          ? `Asked to release the lock "${inQuotes(event.name)}" (${String(event.holders)} holds of this process) by ${describeAsker(event)}`
          : `Asked to release the lock "${inQuotes(event.name)}" (owner ${event.owner}) by ${describeAsker(event)}`,
      );
      break;
    case 'release-request-sent':
      logger.log(
        `Asked the holders of the lock "${inQuotes(event.name)}" (${String(event.holders)}) to release it` +
          because(event.reason),
      );
      break;
    case 'force-released':
      logger.warn(`Took the lock "${inQuotes(event.name)}" away from its holders${because(event.reason)}`);
      break;
    case 'renewal-failed':
      logger.warn(`Cannot renew ${list(event.names)}, trying until the lease ends: ${reason(event.error)}`);
      break;
    case 'release-failed':
      logger.warn(
        `Cannot release the lock "${inQuotes(event.name)}" (owner ${event.owner}), trying until its lease ends: ` +
          reason(event.error.cause ?? event.error),
      );
      break;
    case 'disconnected':
      logger.error(`No connection to ${event.node}: ${reason(event.error)}`);
      break;
    case 'reconnected':
      logger.log(`Connected to ${event.node} again`);
      break;
    case 'warning':
      logger.warn(onOneLine(event.message));
      break;
    case 'waiting-long':
      logger.warn(
        `Still waits for the lock "${inQuotes(event.name)}" after ${seconds(event.waited)} s: ${holderOf(event)}`,
      );
      break;
    case 'held-long':
      logger.warn(
        `Still holds the lock "${inQuotes(event.name)}" (owner ${event.owner}) after ${seconds(event.heldFor)} s`,
      );
      break;
    case 'lock-order':
      logger.warn(describeConflict(event));
      break;
    case 'deadlock':
      logger.warn(
        `Deadlock${event.broken ? `, the wait for "${inQuotes(event.name)}" ends` : ''}: ${describeCycle(event.cycle)}`,
      );
      break;
  }
}

const seconds = (time: number): string => (time / 1_000).toFixed(1);

const holderOf = ({ holder, holderLabel }: Extract<UnusualEvent, { type: 'waiting-long' }>): string => {
  const by = holderLabel === undefined ? [holder] : [`"${inQuotes(holderLabel)}"`, holder];
  return holder === undefined ? 'the holder is not known' : `held by ${by.join(', ')}`;
};

const list = (names: readonly string[]): string => {
  const shown = names.slice(0, 3).map((name) => `"${inQuotes(name)}"`);
  return names.length > 3
    ? `${shown.join(', ')} and ${String(names.length - 3)} more locks`
    : shown.join(', ');
};

const reason = (error: unknown): string =>
  error instanceof Error ? onOneLine(error.message || error.name) : 'the connection was closed';
