import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LockService } from '../../../lib/index.js';
import { storeOn, type ScriptedMember, scriptedMembers } from './scripted-member.js';

const LEASE = 30_000;
const OWNERS = ['x:1', 'y:1', 'z:1'];

describe('A caller that does not wait for a lock over three nodes', () => {
  let members: ScriptedMember[];
  let locks: LockService;

  beforeEach(async () => {
    members = scriptedMembers(3);
    locks = new LockService({ store: storeOn(members, LEASE), leaseTime: LEASE });
    await locks.using('before', () => undefined);
  });

  afterEach(() => locks.close());

  const occupy = async (owners: readonly string[]) => {
    for (const [index, owner] of owners.entries())
      await members[index]!.store.acquire({ name: 'a', owner, leaseTime: LEASE });
  };
  /** Others that ask at the same moment have got a node each, and give it back when they hear that none has a majority. */
  const split = async () => {
    await occupy(OWNERS);
    members[2]!.store.afterAcquire = async () => {
      members[2]!.store.afterAcquire = () => undefined;
      for (const [index, owner] of OWNERS.entries())
        await members[index]!.store.release({ name: 'a', owner });
    };
  };
  const requests = () => members.map(({ store }) => store.calls.acquire);

  it.each<[string, string | string[]]>([
    ['gets it', 'a'],
    ['gets it together with others', ['a', 'b']],
  ])('%s although each of those that ask at the same moment has got a node', async (_, name) => {
    await split();
    const lease = await locks.tryAcquire(name);
    expect(lease?.held).toBe(true);
    await lease?.release();
  });

  it('is told at once that it is busy where a majority names its holder', async () => {
    await occupy(['x:1', 'x:1']);
    const before = requests();
    expect(await locks.tryAcquire('a')).toBeNull();
    expect(requests()).toEqual(before.map((count) => count + 1));
  });

  it('is told so after a few requests where no majority does', async () => {
    await occupy(OWNERS);
    const [before = NaN] = requests();
    expect(await locks.tryAcquire('a')).toBeNull();
    const [after = NaN] = requests();
    expect(after - before).toBe(5);
  });
});
