import type { Redis } from 'ioredis';
import type { StoreWarning } from '../lock-store.js';

/** What is risky about a client that the application has made. It is used as it is all the same. */
export function clientWarnings({ options }: Redis, node: string): StoreWarning[] {
  const warnings: StoreWarning[] = [];
  if (options.commandTimeout === undefined) {
    const message =
      `The client of ${node} has no commandTimeout: on a server that is frozen, its commands wait without an end. ` +
      'Those of locks are given up in time all the same. Set commandTimeout, or pass a URL or options instead of a client';
    warnings.push({ code: 'command-timeout', node, message });
  }
  return warnings;
}
