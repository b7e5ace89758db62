import type { ResolvedLockOptions } from './lock.options.js';

/** A shorter lease of the module is more likely given in seconds than meant, ms. */
const SHORT_LEASE = 100;

/** What is allowed at boot and probably not meant. */
export function settingsWarnings({
  leaseTime,
  enabled,
}: Pick<ResolvedLockOptions, 'leaseTime' | 'enabled'>): { code: string; message: string }[] {
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
