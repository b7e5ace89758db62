/**
 * The store into which `planted-bugs.spec.ts` plants its bugs passes without one. A file of its own: a bug may make a store
 * ask without a pause, and the leases here end if the process has no time for them.
 */
import { describeLockStore } from '../../../lib/testing/describe-lock-store.js';
import { withoutQueues } from '../planted-bugs.js';
import { placeWith } from '../buggy-store.js';

describeLockStore(
  'memory, a client for each process',
  placeWith(() => ({})),
);

describeLockStore('memory, without queues', placeWith(withoutQueues(() => ({}))), { queues: false });
