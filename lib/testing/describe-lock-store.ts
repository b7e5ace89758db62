import { describeAskers } from './store-suite/askers.js';
import { describeClaims } from './store-suite/claims.js';
import { describeClients } from './store-suite/clients.js';
import { describeForcedReleases } from './store-suite/forced-releases.js';
import { describeGroups } from './store-suite/groups.js';
import { describeHandOver } from './store-suite/hand-over.js';
import { describeKinds } from './store-suite/kinds.js';
import { describeMessages } from './store-suite/messages.js';
import { describePeriods } from './store-suite/periods.js';
import { describePlain } from './store-suite/plain.js';
import { describePlainQueue } from './store-suite/plain-queue.js';
import { describeDeathsInPlainQueue } from './store-suite/plain-queue-deaths.js';
import { describeQueues } from './store-suite/queues.js';
import { describeSharedHolds } from './store-suite/shared-holds.js';
import { describeServices } from './store-suite/services.js';
import { describeTransfers } from './store-suite/transfers.js';
import { Stage, type StorePlace } from './store-suite/stage.js';
import { words } from './test-framework.js';

export type { StorePlace } from './store-suite/stage.js';

/**
 * The contract of every store, as tests: for the authors of stores, and for the stores of this package.
 * @param createPlace makes a location of its own for this suite
 * @param options `queues: false` for a store without the kinds that have a queue; see `LockStore.queues`. `losses: false` for
 * such a store that does not report forced releases either; see `LockStore.subscribeToLosses`
 * @throws LockConfigError when the test framework has no globals (`describe`, `it`, `beforeAll`, `afterAll`)
 */
export function describeLockStore(
  title: string,
  createPlace: () => Promise<StorePlace>,
  { queues = true, losses = true }: { queues?: boolean; losses?: boolean } = {},
): void {
  const { describe, beforeAll, afterAll } = words();

  describe(`lock store: ${title}`, () => {
    const stage = new Stage(createPlace);
    beforeAll(() => stage.set());
    afterAll(() => stage.clear());

    describePlain(stage);
    if (queues || losses) describeMessages(stage);
    if (queues || losses) describeAskers(stage);
    describe('acquireAll', () => {
      describeGroups(stage);
    });
    if (queues) {
      describe('queue of a plain lock', () => {
        describePlainQueue(stage);
        describeDeathsInPlainQueue(stage);
      });
      describe('handOver', () => {
        describeHandOver(stage);
      });
      describe('queue', () => {
        describeQueues(stage);
        describeSharedHolds(stage);
        describeForcedReleases(stage);
        describeKinds(stage);
        describeClaims(stage);
      });
    }
    describe('transfer', () => {
      describeTransfers(stage, queues);
    });
    describe('periods', () => {
      describePeriods(stage);
    });
    describe('client', () => {
      describeClients(stage, queues);
    });
    describe('under a LockService', () => {
      describeServices(stage, queues);
    });
  });
}
