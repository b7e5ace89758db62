import assert from './assert.js';
import type { AskRequest, QueueMessage } from '../../store/queue-messages.js';
import { words } from '../test-framework.js';
import { listenTo } from './hearing.js';
import { LEASE, sleep, type Stage, until } from './stage.js';

/** The messages of a store to holders whose locks are wanted. */
export function describeAskers(stage: Stage): void {
  const { it } = words();

  it('tells the holder which client has taken its lock by force, and the reason', async () => {
    const heard: QueueMessage[] = [];
    const subscription = await listenTo(stage.store, 'robbed', (message) => heard.push(message));
    const askers = [
      { by: 'console "1"', reason: 'ö\n\\' },
      { by: 'console 2', reason: undefined },
    ];
    for (const [n, asker] of askers.entries()) {
      const [name, owner] = [stage.freshName(), `robbed:${String(n)}`];
      await stage.store.acquire({ name, owner, leaseTime: LEASE });
      assert.equal(await stage.other.forceRelease(name, undefined, asker), true);
      await until(() => heard.some((message) => message.type === 'lost' && message.owner === owner));
      for (const message of heard) {
        if (message.type === 'lost' && message.owner === owner) assert.deepEqual(message.forced, asker);
      }
    }
    subscription.close();
  });

  it('tells the client of an owner that its lock is wanted, and changes nothing', async () => {
    const { store, other } = stage;
    const name = stage.freshName();
    const owner = 'wanted:1';
    const request: AskRequest = { id: 'r 1', name, owner, by: 'console "1"', reason: 'ö\n\\' };
    if (other.requestRelease === undefined) return;
    await store.acquire({ name, owner, leaseTime: LEASE });
    assert.equal(await other.requestRelease(request), false, 'its client does not listen');
    const heard: QueueMessage[] = [];
    const strange: QueueMessage[] = [];
    const subscriptions = await Promise.all([
      listenTo(store, 'wanted', (message) => heard.push(message)),
      listenTo(store, 'stranger', (message) => strange.push(message)),
    ]);
    const toldOf = (id: string) => heard.filter((message) => message.type === 'asked' && message.id === id);
    const again = { ...request, id: 'r2', reason: undefined };
    for (const asked of [request, again]) {
      assert.equal(await other.requestRelease(asked), true);
      await until(() => toldOf(asked.id).length > 0);
      for (const message of toldOf(asked.id)) assert.deepEqual(message, { ...asked, type: 'asked' });
    }
    await sleep(20);
    assert.ok(!strange.some(({ type }) => type === 'asked'));
    assert.equal((await other.inspect(name))?.holders[0]?.owner, owner);
    for (const subscription of subscriptions) subscription.close();
    await until(async () => (await other.requestRelease?.(request)) === false);
    assert.equal(await store.release({ name, owner }), 'released');
  });
}
