import assert from './assert.js';
import type { QueueTerms } from '../../store/lock-store.js';
import { words } from '../test-framework.js';
import { hear } from './hearing.js';
import { FAIR, READ, WRITE, SEMAPHORE, STAND } from './queue-terms.js';
import { LEASE, type Stage, until } from './stage.js';

/** Locks of the kinds with a queue that are taken from their holders. */
export function describeForcedReleases(stage: Stage): void {
  const { it } = words();
  const hearing = (client: string) => hear(stage, client);

  it('tells the client of each hold that is taken by force, on one side or on all', async () => {
    const client = await hearing('holder');
    const lost = () => client.heard.flatMap((message) => (message.type === 'lost' ? message.owner : []));
    const enter = (name: string, owner: string, terms: QueueTerms) =>
      stage.store.acquire({ name, owner, leaseTime: LEASE, queue: { ...terms, ...STAND } });
    const [fair, semaphore, sides] = [stage.freshName(), stage.freshName(), stage.freshName()];
    await enter(fair, 'holder:1', FAIR);
    await enter(fair, 'holder:2', FAIR);
    await enter(semaphore, 'holder:3', SEMAPHORE);
    await enter(semaphore, 'holder:4', SEMAPHORE);
    await enter(sides, 'holder:5', READ);
    for (const name of [fair, semaphore]) await stage.other.forceRelease(name);
    await stage.other.forceRelease(sides, 'exclusive');
    await client.granted('holder:2');
    await until(() => new Set(lost()).size === 3);
    assert.deepEqual([...new Set(lost())].sort(), ['holder:1', 'holder:3', 'holder:4']);
    await stage.other.forceRelease(sides, 'shared');
    await until(() => lost().includes('holder:5'));
    await stage.store.release({ name: fair, owner: 'holder:2', queue: FAIR });
    client.close();
  });

  it('by force, frees one side of a read-write lock, or all', async () => {
    const name = stage.freshName();
    const enter = (owner: string, terms: QueueTerms, ownWriteHold?: string) =>
      stage.store.acquire({
        name,
        owner,
        leaseTime: LEASE,
        queue: { ...terms, entry: undefined, ownWriteHold },
      });
    const owners = async () => (await stage.store.inspect(name))?.holders.map(({ owner }) => owner).sort();
    await enter('a:1', WRITE);
    assert.equal(await stage.other.forceRelease(name, 'shared'), false);
    await enter('a:2', READ, 'a:1');
    assert.equal(await stage.other.forceRelease(name, 'exclusive'), true);
    assert.deepEqual(await owners(), ['a:2']);
    assert.equal(await stage.other.forceRelease(name, 'exclusive'), false);
    await enter('a:3', READ);
    assert.equal(await stage.other.forceRelease(name, 'shared'), true);
    assert.equal(await owners(), undefined);
    await enter('a:4', WRITE);
    await enter('a:5', READ, 'a:4');
    assert.equal(await stage.other.forceRelease(name), true);
    assert.equal(await owners(), undefined);
    await stage.store.acquire({ name, owner: 'a:6', leaseTime: LEASE });
    assert.equal(await stage.other.forceRelease(name, 'exclusive'), false, 'a plain lock has no sides');
    await stage.store.release({ name, owner: 'a:6' });
  });
}
