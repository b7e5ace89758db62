import type { Redis, RedisOptions } from 'ioredis';
import type { StoreWarning } from '../../../store/store-health.js';

/** The risky settings of a client that the application has made. The client is still used as it is. */
export function clientWarnings({ options }: Redis, node: string): StoreWarning[] {
  const warnings: StoreWarning[] = [];
  if (options.commandTimeout === undefined) {
    const message =
      `The client of ${node} has no commandTimeout: on a server that is frozen, its commands wait without an end. ` +
      'Those of locks are given up in time all the same. Pass a URL or options, so that locks have a client of their own, or ' +
      'set commandTimeout, unless the client is used for blocking commands too, as by BullMQ';
    warnings.push({ code: 'command-timeout', node, message });
  }
  if (options.autoResendUnfulfilledCommands !== false && options.maxRetriesPerRequest !== 0) {
    const message =
      `The client of ${node} sends commands again after a lost connection. A command that arrives late or twice is undone, but ` +
      'until then a lock may look busy. Set autoResendUnfulfilledCommands to false, or pass a URL or options instead';
    warnings.push({ code: 'resend', node, message });
  }
  if (options.sentinels != null && options.failoverDetector !== true) {
    const message =
      `The client of ${node} notices a failover only when the old master hangs up, and may take locks there that ` +
      'no other process sees. Set failoverDetector to true, or pass options instead of a client';
    warnings.push({ code: 'failover-detector', node, message });
  }
  if (options.sentinels != null && options.sentinelCommandTimeout === undefined) {
    const message =
      `The client of ${node} has no sentinelCommandTimeout: it waits without an end for a sentinel that is frozen, and ` +
      'takes no lock meanwhile, although other sentinels know the master. Set sentinelCommandTimeout, or pass options ' +
      'instead of a client';
    warnings.push({ code: 'sentinel-command-timeout', node, message });
  }
  if (options.sentinels != null && options.failoverDetector === true && !watchesAgainSoon(options)) {
    const message =
      `The client of ${node} watches for no failover for a while, ioredis says a minute, after its connections to the sentinels ` +
      'have ended, and stays at a former master that lives on. Set sentinelReconnectStrategy to (attempt) => ' +
      'Math.min(attempt * 100, 1_000), or pass options instead of a client';
    warnings.push({ code: 'sentinel-reconnect', node, message });
  }
  if (typeof options.retryStrategy !== 'function') {
    const message =
      `The client of ${node} does not connect again (no retryStrategy): the first loss of its connection ends all ` +
      'locking. Set retryStrategy, or pass a URL or options instead of a client';
    warnings.push({ code: 'retry-strategy', node, message });
  }
  // Nothing moves behind a socket of this machine, and Sentinel tells its clients of the new master.
  const isFixed = options.sentinels != null || options.path != null;
  if (!isFixed && typeof options.reconnectOnError !== 'function') {
    const message =
      `The client of ${node} stays at a server that has become a replica (no reconnectOnError): if a failover moves ` +
      'the name to another server, as of a managed Redis, each lock is refused with READONLY from then on. Set ' +
      "reconnectOnError to (error) => error.message.includes('READONLY'), or pass a URL or options instead of a client";
    warnings.push({ code: 'reconnect-on-error', node, message });
  }
  return warnings;
}

/** The default of ioredis is a minute, and without a strategy the client watches for no failover any more. */
const watchesAgainSoon = ({ sentinelReconnectStrategy }: RedisOptions): boolean =>
  (sentinelReconnectStrategy?.(1) ?? Infinity) <= 1_000;
