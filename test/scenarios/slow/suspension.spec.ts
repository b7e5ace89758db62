import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { RedisServer } from '../../support/redis-server.js';
import { Suspension } from '../../support/suspension.js';
import type { Worker } from '../../support/worker.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { until } from '../until.js';

const HOUR = 3_600_000;
const LEASE = 30_000;

interface State {
  held: boolean;
  remainingTime: number;
  aborted: boolean;
  reason?: string;
}

const suspension = Suspension.make();

const skipped = suspension === undefined ? ' (skipped: its clocks need Linux and a C compiler)' : '';

(skipped === '' ? describe : describe.skip)(`A machine that was suspended (pitfall 58)${skipped}`, () => {
  const environment = new TestEnvironment();
  let server: RedisServer;
  let worker: Worker;

  beforeAll(async () => {
    server = await environment.server();
  });
  beforeEach(async () => {
    suspension?.last(0);
    worker = await environment.worker({ url: server.url, env: suspension?.env ?? {} });
  });
  afterEach(() => worker.stop());
  afterAll(async () => {
    await environment.end();
    suspension?.remove();
  });

  const acquire = async (name: string, options: object = {}) =>
    (await worker.call<{ id: number }>('acquire', name, options)).id;

  it.each([
    ['renewed', {}],
    ['fixed', { leaseTime: LEASE }],
    ['fair', { kind: 'fair' }],
  ])('has lost its leases when it wakes up, and knows at the first look: a %s one', async (kind, options) => {
    const id = await acquire(kind, options);
    expect(await worker.call<State>('state', id)).toMatchObject({ held: true, aborted: false });
    suspension?.last(HOUR);
    expect(await worker.call<State>('state', id)).toMatchObject({
      held: false,
      remainingTime: 0,
      aborted: true,
      reason: 'expired',
    });
  });

  it('tells its holders by itself, soon after it has woken up', async () => {
    const id = await acquire('told');
    suspension?.last(HOUR);
    // Says what the signal has told, and asks the lease for nothing.
    await until(async () => (await worker.call('lossOf', id)) === 'expired');
  });

  it('has what is left of a lease that outlasts it, and renews that at once', async () => {
    const [renewed, fixed] = [await acquire('rest'), await acquire('rest fixed', { leaseTime: LEASE })];
    const { remainingTime } = await worker.call<State>('state', fixed);
    suspension?.last(15_000);
    const rest = await worker.call<State>('state', fixed);
    expect(rest.held).toBe(true);
    expect(rest.remainingTime).toBeLessThan(remainingTime - 15_000);
    await until(async () => (await worker.call<State>('state', renewed)).remainingTime > 20_000);
  });
});
