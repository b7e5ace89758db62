import { LockConfigError } from '../../api/errors.js';
import type { LockService } from '../../module/lock-service.js';
import type { AcquireOptions } from '../../api/options.js';

/**
 * For the moment when Nest injects the service: a kind that its store does not have fails the boot, and not the first call.
 * @param declared what asks for the kind, for the message
 * @throws LockConfigError with the store's reason
 */
export function assertSupported(service: LockService, kind: AcquireOptions['kind'], declared: string): void {
  if (kind === undefined || kind === 'lock') return;
  try {
    // Costs nothing, and sends nothing. A test double may not have it.
    (service as Partial<LockService>).getFairLock?.('boot');
  } catch (error) {
    throw new LockConfigError(declared, (error as Error).message);
  }
}
