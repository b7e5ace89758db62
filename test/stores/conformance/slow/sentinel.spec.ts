import { createStore } from '../../../support/store.js';
import { describeLockStore } from '../../../../lib/testing/describe-lock-store.js';
import { SentinelDeployment } from '../../../support/sentinel.js';

describeLockStore('Sentinel: a master, two replicas, three sentinels', async () => {
  const deployment = await SentinelDeployment.start();
  const { connection } = deployment;
  return {
    open: () => createStore({ connection }, { keyPrefix: 'lock:', leaseTime: 30_000 }),
    close: () => deployment.stop(),
  };
});
