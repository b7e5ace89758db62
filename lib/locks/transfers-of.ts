import type { LockClient } from '../core/lock-client.js';
import type { Transfers } from '../core/transfers.js';
import { LockConfigError } from '../lock.errors.js';

/** @throws LockConfigError when the store does not pass holds on */
export function transfersOf({ transfers, options }: LockClient, name: string): Transfers {
  if (transfers !== undefined) return transfers;
  const rule =
    options.location === 'nodes'
      ? 'has no leases that travel: two processes that resume one ticket could each get some of the nodes, and none a ' +
        'majority. Use connection for these'
      : 'has no leases that travel: its store does not pass a hold on from one owner to another';
  throw new LockConfigError(options.location, rule, { key: name });
}
