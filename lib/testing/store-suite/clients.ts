import type { NamesReply } from '../../store/lock-store.js';
import assert from './assert.js';
import type { ConnectionChange, NodeHealth, StoreWarning } from '../../store/store-health.js';
import { LEASE, sleep, type Stage, tokenOf, until } from './stage.js';
import { words } from '../test-framework.js';

/** The reports of a client about itself and about the servers, and its end. */
export function describeClients(stage: Stage, queues: boolean): void {
  const { it } = words();

  it('gives a reason only where it has no queues', () => {
    const { queues: own, noQueues } = stage.store;
    assert.equal(own !== undefined, queues);
    if (queues) assert.equal(noQueues, undefined);
    else assert.notEqual(noQueues, '');
    return Promise.resolve();
  });

  it('names one server for a name, always the same', () => {
    const name = stage.freshName();
    const nodes = [stage.store, stage.store, stage.other].map((store) => store.nodeOf?.(name) ?? '');
    assert.equal(typeof nodes[0], 'string');
    assert.equal(new Set(nodes).size, 1, nodes.join());
    return Promise.resolve();
  });

  it('reports no outage while its servers answer', async () => {
    const name = stage.freshName();
    await stage.store.health('look');
    assert.equal(stage.store.outageOf?.(name), undefined);
  });

  it('tells its clients what each of them is called, for the time that was asked for', async () => {
    const { store, other } = stage;
    if (store.labels === undefined) return;
    const [one, two] = [stage.freshName(), stage.freshName()];
    assert.equal(await other.labels?.find(one), undefined);
    await store.labels.keep(one, 'host one:1', LEASE);
    await store.labels.keep(two, 'ö "two"', 300);
    assert.equal(await other.labels?.find(one), 'host one:1');
    assert.equal(await other.labels?.find(two), 'ö "two"');
    await store.labels.keep(one, 'renamed', LEASE);
    await until(async () => (await other.labels?.find(two)) === undefined);
    assert.equal(await other.labels?.find(one), 'renamed');
  });

  it('keeps what each of its clients waits for, for the time that was asked for or until the client forgets it', async () => {
    const { store, other } = stage;
    if (store.waits === undefined) return;
    const [one, two] = [stage.freshName(), stage.freshName()];
    assert.equal(await other.waits?.find(one), undefined);
    await store.waits.forget(one);
    await store.waits.keep(one, '{"note":1}', LEASE);
    await store.waits.keep(two, 'ö "two"', 300);
    assert.equal(await other.waits?.find(one), '{"note":1}');
    assert.equal(await other.waits?.find(two), 'ö "two"');
    assert.equal(await other.labels?.find(one), undefined);
    await store.waits.keep(one, '{"note":2}', LEASE);
    assert.equal(await other.waits?.find(one), '{"note":2}');
    await store.waits.forget(one);
    assert.equal(await other.waits?.find(one), undefined);
    await until(async () => (await other.waits?.find(two)) === undefined);
  });

  it('names the locks that there are, by what their names begin with', async () => {
    const { store, other } = stage;
    const { listing } = store;
    if (listing === undefined) return;
    const prefix = stage.freshName();
    const held = [1, 2, 3].map((n) => `${prefix}:${String(n)}`);
    for (const name of held) await other.acquire({ name, owner: 'a:1', leaseTime: LEASE });
    const elsewhere = stage.freshName();
    await other.acquire({ name: elsewhere, owner: 'a:1', leaseTime: LEASE });
    // Locks of other tests may end meanwhile.
    const ownOf = ({ names }: NamesReply) =>
      names.filter(({ name }) => [...held, elsewhere].includes(name)).map(({ name }) => name);
    const namesOf = async (prefix: string): Promise<string[]> => {
      const found = new Set<string>();
      let cursor: string | undefined;
      do {
        const reply: NamesReply = await listing.names({ prefix, cursor });
        for (const { name, isQueue } of reply.names) if (!isQueue) found.add(name);
        const { step } = reply;
        if (step !== undefined)
          assert.deepEqual(ownOf(await listing.names({ prefix, cursor: step })), ownOf(reply));
        ({ cursor } = reply);
      } while (cursor !== undefined);
      return [...found].sort();
    };
    assert.deepEqual(await namesOf(`${prefix}:`), held);
    assert.deepEqual(await namesOf(`${prefix}:2`), [`${prefix}:2`]);
    // The prefix is a text, and no pattern of Redis, SQL or another language.
    const marked = `${prefix}\\[1]*?%_`;
    await other.acquire({ name: marked, owner: 'a:1', leaseTime: LEASE });
    assert.deepEqual(await namesOf(marked), [marked]);
    for (const pattern of ['*', '?', '%', '_', '.', '[1-3]'])
      assert.deepEqual(await namesOf(`${prefix}:${pattern}`), [], pattern);
    const all = await namesOf('');
    for (const name of [...held, elsewhere]) assert.ok(all.includes(name), name);
  });

  it('grants a hold as long as its limit, and raises the limit if it can', async () => {
    const { leaseLimit } = stage.store;
    if (leaseLimit === undefined) return;
    const name = stage.freshName();
    assert.equal(await leaseLimit.raise(name, LEASE), undefined);
    assert.ok(leaseLimit.most >= LEASE, `the limit is ${String(leaseLimit.most)}`);
    tokenOf(await stage.store.acquire({ name, owner: 'a:1', leaseTime: LEASE }));
    assert.equal(await stage.store.release({ name, owner: 'a:1' }), 'released');
  });

  it('reports the health of its nodes, at each depth', async () => {
    for (const depth of [undefined, 'look', 'try'] as const) {
      const { status, nodes, warnings, charter } = await stage.store.health(depth);
      assert.equal(status, 'up', depth);
      assert.ok(nodes.length > 0);
      for (const node of nodes) {
        assert.equal(node.status, 'up', node.error);
        assert.equal(node.error, undefined);
        assertNode(node);
      }
      if (charter !== undefined) {
        assertText(charter.id);
        for (const time of [charter.longestLease, charter.allowedLease]) assert.ok(time > 0, String(time));
      }
      assert.ok(Array.isArray(warnings));
      for (const { code, node, message } of warnings as readonly StoreWarning[]) {
        for (const text of [code, node, message]) assertText(text);
      }
    }
  });

  it('reports only connection changes that happened', async () => {
    const changes: ConnectionChange[] = [];
    const client = stage.open();
    client.onConnectionChange((change) => changes.push(change));
    const request = { name: stage.freshName(), owner: 'a:1', leaseTime: LEASE };
    tokenOf(await client.acquire(request));
    await client.release(request);
    await sleep(20);
    // A copy, because the changes at the end do not matter here.
    const told = [...changes];
    await client.close();
    for (const { node, connected, first, error } of told) {
      assertText(node);
      assert.equal(connected, true, 'the servers are up');
      assert.ok(first === undefined || typeof first === 'boolean');
      assert.equal(error, undefined);
    }
  });

  it('closes without effect on its locks and on other clients', async () => {
    const [name, free] = [stage.freshName(), stage.freshName()];
    const client = stage.open();
    const woken = new Set<string>();
    const theirs = await stage.other.subscribeToReleases(free, () => woken.add('theirs'));
    const own = await client.subscribeToReleases(free, () => woken.add('own'));
    tokenOf(await client.acquire({ name, owner: 'a:1', leaseTime: LEASE }));
    tokenOf(await stage.other.acquire({ name: free, owner: 'b:1', leaseTime: LEASE }));
    await ends(client.close());
    await ends(client.close());
    woken.clear();
    assert.equal((await stage.other.inspect(name))?.holders[0]?.owner, 'a:1');
    assert.equal(await stage.other.release({ name: free, owner: 'b:1' }), 'released');
    await until(() => woken.has('theirs'));
    await sleep(20);
    // If all clients are one object, it stays in use, and gets the messages of the remaining subscriptions.
    if (client !== stage.other) assert.ok(!woken.has('own'), 'a client that is closed hears nothing');
    own.close();
    theirs.close();
    assert.equal(await stage.other.release({ name, owner: 'a:1' }), 'released');
  });
}

async function ends(promise: Promise<void>): Promise<void> {
  assert.equal(await Promise.race([promise.then(() => 'ended'), sleep(5_000)]), 'ended');
}

const assertText = (value: unknown): void => {
  assert.ok(typeof value === 'string' && value.length > 0, `expected a text, found ${String(value)}`);
};

/** A field that a node does not report is undefined. A field that it reports has a usable value. */
function assertNode(node: NodeHealth): void {
  assertText(node.node);
  const count = (value: unknown) => Number.isFinite(value) && (value as number) >= 0;
  const text = (value: unknown) => typeof value === 'string' && value.length > 0;
  const flag = (value: unknown) => typeof value === 'boolean';
  const told = (value: object, rules: Readonly<Record<string, (value: unknown) => boolean>>): void => {
    for (const [field, rule] of Object.entries(rules)) {
      const found = (value as Record<string, unknown>)[field];
      assert.ok(found === undefined || rule(found), `${field} is ${String(found)}`);
    }
  };
  told(node, {
    latency: count,
    subscriber: flag,
    runId: text,
    version: text,
    role: (role) => role === 'master' || role === 'replica',
    replicas: Array.isArray,
    clockOffset: Number.isFinite,
    evictionPolicy: text,
    persistence: (value) => typeof value === 'object',
    uptime: count,
    quarantine: count,
    sentinels: count,
  });
  for (const replica of node.replicas ?? []) {
    assertText(replica.node);
    assert.equal(typeof replica.online, 'boolean');
    told(replica, { lag: count, behind: count });
  }
  if (node.persistence === undefined) return;
  for (const field of ['appendOnly', 'failing'] as const) assert.ok(flag(node.persistence[field]), field);
  told(node.persistence, { lastSave: count });
}
