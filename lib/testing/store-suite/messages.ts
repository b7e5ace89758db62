import assert from './assert.js';
import type { QueueMessage } from '../../store/queue-messages.js';
import { words } from '../test-framework.js';
import { listenTo } from './hearing.js';
import { assertMessage, LEASE, sleep, type Stage, tokenOf, until } from './stage.js';

/** The messages of the store: to clients about their holds, and to waiters about releases. */
export function describeMessages(stage: Stage): void {
  const { describe, it } = words();

  describe('listen', () => {
    it('tells the client of the holder about a forced release, and about no other release', async () => {
      const [forced, released] = [stage.freshName(), stage.freshName()];
      const heard: QueueMessage[] = [];
      const subscription = await listenTo(stage.store, 'holder', (message) => heard.push(message));
      assert.ok(subscription.active);
      const lost = () => heard.flatMap((message) => (message.type === 'lost' ? message.owner : []));
      await stage.store.acquire({ name: released, owner: 'holder:1', leaseTime: LEASE });
      await stage.store.release({ name: released, owner: 'holder:1' });
      await stage.store.acquire({ name: forced, owner: 'holder:2', leaseTime: LEASE });
      await stage.other.forceRelease(forced);
      await until(() => lost().length > 0);
      assert.deepEqual(new Set(lost()), new Set(['holder:2']));
      subscription.close();
    });

    it('tells each client what concerns it, and a closed client nothing', async () => {
      const heard = { x: [] as QueueMessage[], y: [] as QueueMessage[], z: [] as QueueMessage[] };
      const [x, y, z] = await Promise.all([
        listenTo(stage.store, 'x', (message) => heard.x.push(message)),
        listenTo(stage.store, 'y', (message) => heard.y.push(message)),
        listenTo(stage.other, 'z', (message) => heard.z.push(message)),
      ]);
      const lose = async (owner: string) => {
        const name = stage.freshName();
        tokenOf(await stage.store.acquire({ name, owner, leaseTime: LEASE }));
        await stage.other.forceRelease(name);
      };
      z.close();
      heard.z.length = 0;
      for (const owner of ['z:1', 'x:1', 'y:1']) await lose(owner);
      await until(() => [heard.x, heard.y].every((messages) => messages.some(({ type }) => type === 'lost')));
      await sleep(20);
      for (const client of ['x', 'y'] as const) {
        for (const message of heard[client]) assertMessage(message, client);
      }
      assert.deepEqual(heard.z, []);
      x.close();
      y.close();
    });
  });

  describe('subscribe', () => {
    it('tells all subscribers about a release', async () => {
      const name = stage.freshName();
      const woken = new Set<string>();
      await stage.store.acquire({ name, owner: 'a:1', leaseTime: LEASE });
      const subscriptions = await Promise.all([
        stage.other.subscribeToReleases(name, () => woken.add('one')),
        stage.other.subscribeToReleases(name, () => woken.add('two')),
        stage.store.subscribeToReleases(name, () => woken.add('releaser')),
      ]);
      assert.ok(subscriptions.every((subscription) => subscription.active));
      await stage.store.release({ name, owner: 'a:1' });
      await until(() => woken.size === 3);
      await stage.store.acquire({ name, owner: 'a:2', leaseTime: LEASE });
      await sleep(20);
      woken.clear();
      await stage.store.release({ name, owner: 'a:2' });
      await until(() => woken.size === 3);
      for (const subscription of subscriptions) subscription.close();
    });

    it('tells subscribers about a forced release', async () => {
      const name = stage.freshName();
      const woken = new Set<string>();
      await stage.store.acquire({ name, owner: 'a:1', leaseTime: LEASE });
      const subscription = await stage.other.subscribeToReleases(name, () => woken.add('one'));
      await stage.store.forceRelease(name);
      await until(() => woken.has('one'));
      subscription.close();
    });

    it('tells subscribers only about their own name', async () => {
      const [name, another] = [stage.freshName(), stage.freshName()];
      const woken: string[] = [];
      const subscriptions = await Promise.all(
        [name, another].map((each) => stage.other.subscribeToReleases(each, () => woken.push(each))),
      );
      await stage.store.acquire({ name, owner: 'a:1', leaseTime: LEASE });
      woken.length = 0;
      await stage.store.release({ name, owner: 'a:1' });
      await until(() => woken.includes(name));
      await sleep(20);
      assert.deepEqual(new Set(woken), new Set([name]));
      for (const subscription of subscriptions) subscription.close();
    });

    it('ends for a subscription that closes, and goes on for the others', async () => {
      const name = stage.freshName();
      const woken = new Set<string>();
      const first = await stage.other.subscribeToReleases(name, () => woken.add('first'));
      const second = await stage.other.subscribeToReleases(name, () => woken.add('second'));
      woken.clear();
      first.close();
      await stage.store.acquire({ name, owner: 'a:1', leaseTime: LEASE });
      await stage.store.release({ name, owner: 'a:1' });
      await until(() => woken.has('second'));
      assert.ok(!woken.has('first'));
      second.close();
    });
  });

  it('inspects how many clients are subscribed to the release', async () => {
    const name = stage.freshName();
    await stage.store.acquire({ name, owner: 'a:1', leaseTime: LEASE });
    const listeners = async () => (await stage.store.inspect(name))?.listeners ?? NaN;
    assert.equal(await listeners(), 0);
    const subscription = await stage.other.subscribeToReleases(name, () => undefined);
    await until(async () => (await listeners()) === 1);
    subscription.close();
    await until(async () => (await listeners()) === 0);
  });
}
