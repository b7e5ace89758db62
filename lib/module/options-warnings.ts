import type { ResolvedLockOptions } from '../api/resolved-options.js';
import { inQuotes } from '../runtime/text.js';

/** A shorter lease of the module is more likely given in seconds than meant, ms. */
const SHORT_LEASE = 100;

/** Settings that are allowed and probably not meant. */
export interface ProbableMistake {
  readonly code: string;
  readonly message: string;
}

/** Options that are probably not meant. */
export function settingsWarnings({
  leaseTime,
  enabled,
}: Pick<ResolvedLockOptions, 'leaseTime' | 'enabled'>): ProbableMistake[] {
  const warnings = [];
  if (leaseTime < SHORT_LEASE) {
    const message =
      `leaseTime is ${String(leaseTime)} ms. Times are milliseconds: a pause of the process or of the network is ` +
      "often longer, and the lock is lost then. Write '30s' for 30 seconds";
    warnings.push({ code: 'short-lease', message });
  }
  if (!enabled) {
    const message =
      'enabled is false: @DistributedLock and LockInterceptor call their methods WITHOUT a lock. This is for an environment ' +
      'with a single instance of the application';
    warnings.push({ code: 'locks-disabled', message });
  }
  return warnings;
}

/** A wrong order of a lock and a transaction on one method. */
export const transactionWarning = (method: string): ProbableMistake => ({
  code: 'lock-inside-transaction',
  message:
    `@DistributedLock on ${method} is below the decorator of a transaction: the lock is released before the commit, and ` +
    'the next holder reads the state from before it. Write @DistributedLock above that decorator',
});

/** A wrong order of a fence and a transaction on one method. */
export const fenceWarning = (method: string): ProbableMistake => ({
  code: 'fence-outside-transaction',
  message:
    `@Fenced on ${method} is not below the decorator of a transaction: its guard is not the first statement of one. ` +
    'Write @DistributedLock, below it @Transactional, below that @Fenced',
});

/** Settings that are probably not meant in production. */
export const unguardedBoardWarning = (path: string): ProbableMistake => ({
  code: 'unguarded-board',
  message:
    `LockBoardModule at "${inQuotes(path)}" has no guard, and NODE_ENV is production: each client that reaches the application can read the ` +
    'names of locks, hosts and labels. Set its option guards',
});

/** A warning for applications whose GraphQL runs no filters for field resolvers. */
export const fieldResolverWarning = (method: string): ProbableMistake => ({
  code: 'unfiltered-field-resolver',
  message:
    `${method} is a field resolver, and GraphQL runs no filters for these. The error of a busy lock below one would tell ` +
    "clients the lock and its holder. Set fieldResolverEnhancers: ['filters'] in the options of GraphQLModule",
});
