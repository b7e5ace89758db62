import { describe, expect, it } from '@jest/globals';
import { type QueueTerms, RESERVED } from '../../../lib/store/lock-store.js';
import { AcquireCommands } from '../../../lib/stores/redis/commands/acquire-commands.js';
import type { Receipt } from '../../../lib/stores/redis/commands/command.js';
import { Confirmations } from '../../../lib/stores/redis/commands/confirmations.js';
import { inspect } from '../../../lib/stores/redis/commands/inspection.js';
import { Listing } from '../../../lib/stores/redis/commands/listing.js';
import { Periods } from '../../../lib/stores/redis/commands/periods.js';
import { requestRelease } from '../../../lib/stores/redis/commands/release-requests.js';
import { Renewals } from '../../../lib/stores/redis/commands/renewals.js';
import { Replication } from '../../../lib/stores/redis/commands/replication.js';
import { ScriptCalls } from '../../../lib/stores/redis/commands/script-calls.js';
import * as scripts from '../../../lib/stores/redis/commands/script.js';
import { ReleaseCommands } from '../../../lib/stores/redis/commands/release-commands.js';
import { ScriptedDeployment, ScriptedServer } from '../../doubles/scripted-deployment.js';
import { errorReply } from '../../doubles/replies.js';

/** What a real server answers rarely, or several servers at one moment. */

const AWAY = new Error('connect ECONNREFUSED');

/** A server that counts the subscribers of some channels. */
const counting = (node: string, counts: Readonly<Record<string, number>>, receivers = 0) =>
  new ScriptedServer(node, ([command, ...channels]) =>
    command === 'PUBLISH' ? receivers : channels.flatMap((name) => [name, counts[String(name)] ?? 0]),
  );
const gone = (node: string) => new ScriptedServer(node, () => AWAY);

const callsOf = (deployment: ScriptedDeployment) => new ScriptCalls(deployment, 'lock:');

describe('A look at a lock', () => {
  const CHANNEL = 'redisson_lock__channel:{lock:a}';
  const QUEUE = ['x one:1', 1_000_000, 'x two:1', 2_000_000];
  const asked = (parts: ConstructorParameters<typeof ScriptedDeployment>[0], answer: unknown) => {
    const deployment = new ScriptedDeployment({ ...parts, run: () => answer });
    return { deployment, look: () => inspect(deployment, callsOf(deployment), 'a') };
  };

  it('at a single server takes what its script counts', async () => {
    const server = counting('a', { [CHANNEL]: 9 });
    const { deployment, look } = asked({ servers: [server] }, ['17 x:1', 2, ['x:1', 250], QUEUE, 0, ['one']]);
    expect(await look()).toMatchObject({ listeners: 2, queue: [{ dead: true }, { dead: false }] });
    expect(server.sent).toEqual([]);
    expect(deployment.runs[0]?.args.slice(0, 2)).toEqual(['NUMSUB', CHANNEL]);
  });

  it('at a cluster counts the subscribers of all nodes, and finds the dead by that', async () => {
    const servers = [
      counting('a', { [CHANNEL]: 1, 'lock_queue__channel:one': 1 }),
      counting('b', { [CHANNEL]: 2 }),
    ];
    const { look } = asked({ isCluster: true, servers }, ['17 x:1', 0, ['x:1', 250], QUEUE, 0, []]);
    expect(await look()).toMatchObject({ listeners: 3, queue: [{ dead: false }, { dead: true }] });
  });

  it('at a cluster takes no waiter for dead while a node does not answer', async () => {
    const servers = [counting('a', {}), gone('b')];
    const { look } = asked({ isCluster: true, servers }, ['17 x:1', 0, ['x:1', 250], QUEUE, 0, []]);
    expect(await look()).toMatchObject({ queue: [{ dead: false }, { dead: false }] });
  });

  it('at a cluster with sharded messages takes the listeners that the node of the lock counts', async () => {
    const servers = [counting('a', { [CHANNEL]: 9, 'lock_queue__channel:two': 1 })];
    const parts = { isCluster: true, sharded: true, servers };
    const { deployment, look } = asked(parts, ['17 x:1', 2, ['x:1', 250], QUEUE, 0, []]);
    expect(await look()).toMatchObject({ listeners: 2, queue: [{ dead: true }, { dead: false }] });
    expect(deployment.runs[0]?.args.slice(0, 2)).toEqual(['SHARDNUMSUB', CHANNEL]);
    const idle = asked(parts, ['17 x:1', 2, ['x:1', 250], [], 0, []]);
    servers[0]?.sent.splice(0);
    expect(await idle.look()).toMatchObject({ listeners: 2, queue: [] });
    expect(servers[0]?.sent).toEqual([]);
  });
});

describe('A request to release', () => {
  const REQUEST = { name: 'a', owner: 'one:1', id: 'id', by: 'other', reason: undefined };
  const send = (parts: ConstructorParameters<typeof ScriptedDeployment>[0]) => {
    const deployment = new ScriptedDeployment(parts);
    return requestRelease(deployment, callsOf(deployment), REQUEST);
  };

  it('is not sent to one that is not', async () => {
    const server = counting('a', {}, 1);
    expect(await send({ servers: [server] })).toBe(false);
    expect(server.sent.map(([command]) => command)).toEqual(['script']);
  });

  it('is sent all the same where that is uncertain, and the receivers are counted', async () => {
    expect(await send({ servers: [counting('a', {}, 1), gone('b')] })).toBe(true);
    expect(await send({ servers: [counting('a', {}, 0), gone('b')] })).toBe(false);
  });

  it('is not taken for heard where no server at all can say it', async () => {
    await expect(send({ servers: [gone('a')] })).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
  });
});

describe('The names of locks on several servers', () => {
  const scanning = (node: string, ...pages: [next: string, keys: string[], run?: string][]) =>
    new ScriptedServer(node, () => {
      const [next, keys, run = 'run1'] = pages.shift() ?? [];
      return [run, next, keys];
    });
  const list = (servers: readonly ScriptedServer[], cursor?: string, prefix = '') => {
    const deployment = new ScriptedDeployment({ servers });
    return new Listing(deployment, callsOf(deployment), 'lock:').names({ prefix, cursor });
  };
  const names = (...given: string[]) => given.map((name) => ({ name, isQueue: false }));

  it('come server by server, in the order of their names, page by page', async () => {
    const servers = [
      scanning('b:1', ['0', ['lock:three']]),
      scanning('a:1', ['7', ['lock:one']], ['0', ['lock:two']]),
    ];
    const first = await list(servers);
    expect(first).toMatchObject({ names: names('one'), cursor: '7 run1 - a:1' });
    const second = await list(servers, first.cursor);
    expect(second).toMatchObject({ names: names('two'), cursor: '0 - - b:1' });
    expect(await list(servers, second.cursor)).toMatchObject({ names: names('three'), cursor: undefined });
    expect(servers[1]?.sent.map(([, cursor]) => cursor)).toEqual(['0', '7']);
  });

  it('begin anew at a server that is another run of it', async () => {
    const server = scanning('a:1', ['9', ['lock:lost'], 'run2'], ['5', ['lock:one'], 'run2']);
    const { names: found, cursor } = await list([server], '7 run1 - a:1');
    expect(found).toEqual(names('one'));
    expect(cursor).toBe('5 run2 - a:1');
    expect(server.sent.map(([, cursor]) => cursor)).toEqual(['7', '0']);
  });

  it('are those with the prefix, taken literally', async () => {
    const server = scanning('a:1', ['0', []]);
    await list([server], undefined, 'a*[b]?\\');
    expect(server.sent).toEqual([['script', '0', 'lock:a\\*\\[b\\]\\?\\\\*', 1_000]]);
  });

  it('include a lock that has only waiters, and no key of any other purpose', async () => {
    const keys = [
      'lock:',
      `lock:one${RESERVED}queue{1}`,
      `lock:one${RESERVED}fence{1}`,
      `lock:${RESERVED}label:one`,
      `lock:${RESERVED}queue`,
    ];
    expect(await list([scanning('a:1', ['0', keys])])).toMatchObject({
      names: [{ name: 'one', isQueue: true }],
      cursor: undefined,
    });
  });

  it.each(['', '7', '7 a:1', 'x r - a:1', '18446744073709551616 r - a:1', '7 r - ', '7 r @ a:1'])(
    'do not begin at %j',
    async (cursor) => {
      await expect(list([scanning('a:1')], cursor)).rejects.toMatchObject({
        code: 'LOCK_CONFIG',
        option: 'cursor',
      });
    },
  );

  it('are unavailable where a server does not answer', async () => {
    await expect(list([gone('a:1')])).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    const none = new ScriptedDeployment({});
    await expect(
      new Listing(none, callsOf(none), '').names({ prefix: '', cursor: undefined }),
    ).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
  });
});

describe('Renewals', () => {
  const request = (name: string, leaseTime = 3_000) => ({ name, owner: 'one:1', leaseTime });
  const renew = (
    requests: readonly ReturnType<typeof request>[],
    parts: ConstructorParameters<typeof ScriptedDeployment>[0],
    confirm: () => Promise<void> = () => Promise.resolve(),
  ) => {
    const deployment = new ScriptedDeployment(parts);
    const calls = callsOf(deployment);
    const confirmed: string[] = [];
    const confirmations = new Confirmations(undefined);
    confirmations.confirm = (_, name) => {
      confirmed.push(name);
      return confirm();
    };
    const renewals = new Renewals(deployment, calls, confirmations);
    return { deployment, confirmed, states: Promise.allSettled(renewals.renew(requests)) };
  };
  const held = ({ keys }: { keys: readonly string[] }) => keys.filter((_, n) => n % 2 === 0).map(() => 1);
  const namesOf = (keys: readonly string[]) => keys.filter((_, n) => n % 2 === 0);

  it('travel together, by slot, a hundred in one command', async () => {
    const requests = Array.from({ length: 201 }, (_, n) => request(`n:${String(n)}`));
    const { deployment, states } = renew(requests, { run: held });
    expect(await states).toEqual(requests.map(() => ({ status: 'fulfilled', value: 'held' })));
    expect(deployment.runs.map(({ keys }) => keys.length / 2)).toEqual([100, 100, 1]);
    const hundred = renew(requests.slice(0, 100), { run: held });
    await hundred.states;
    expect(hundred.deployment.runs).toHaveLength(1);
    const two = renew([request('a'), request('b'), request('c')], {
      run: held,
      groupOf: (key) => (key === 'lock:b' ? 2 : 1),
    });
    await two.states;
    expect(two.deployment.runs.map(({ keys }) => namesOf(keys))).toEqual([['lock:a', 'lock:c'], ['lock:b']]);
  });

  it('wait for replicas where they have written something', async () => {
    const wrote = renew([request('a')], { run: held });
    await wrote.states;
    expect(wrote.confirmed).toEqual(['a']);
    const asked = renew([request('a', 0)], { run: held });
    expect(await asked.states).toMatchObject([{ value: 'held' }]);
    expect(asked.confirmed).toEqual([]);
    const lost = renew([request('a')], { run: () => [0] });
    await lost.states;
    expect(lost.confirmed).toEqual([]);
    const missed = renew([request('a')], { run: held }, () => Promise.reject(AWAY));
    expect(await missed.states).toMatchObject([{ status: 'rejected' }]);
  });

  it.each([
    // The refused one is asked for once more, without its fence.
    ['TRYAGAIN Multiple keys request during rehashing of slot', 4],
    ["NOPERM can't run 'zscore'", 3],
  ])('travel one by one after %s', async (refusal, commands) => {
    const { deployment, states } = renew(
      ['a', 'b'].map((name) => request(name)),
      {
        run: ({ keys }) => (keys.length > 2 || keys[0] === 'lock:b' ? errorReply(refusal) : [1]),
      },
    );
    expect(await states).toMatchObject([
      { value: 'held' },
      { reason: { code: 'LOCK_UNAVAILABLE', key: 'b', effect: 'refused' } },
    ]);
    expect(deployment.runs).toHaveLength(commands);
  });
});

describe('A confirmation by replicas', () => {
  const replicated = (server = waiting(1)) => {
    const confirmations = new Confirmations(new Replication({ replicas: 1, timeout: 100 }));
    const granted = (receipt: Receipt | undefined) => {
      Object.assign(receipt ?? {}, { server, generation: server.generation });
      return Promise.resolve({ granted: true });
    };
    return { server, granted, confirmations };
  };
  const waiting = (confirmed: number) => new ScriptedServer('a:1', () => confirmed);

  it('is none where too few have it, and the grant counts as unknown', async () => {
    const { granted, confirmations } = replicated(waiting(0));
    await expect(confirmations.confirmed('a', granted)).rejects.toMatchObject({
      code: 'LOCK_UNAVAILABLE',
      effect: 'unknown',
      key: 'a',
    });
  });

  it('is none over another connection', async () => {
    const { server, granted, confirmations } = replicated();
    const asking = confirmations.confirmed('a', (receipt) => {
      const grant = granted(receipt);
      server.generation++;
      return grant;
    });
    await expect(asking).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE', effect: 'unknown' });
  });

  it('is none where no server has the write', async () => {
    const { confirmations } = replicated();
    const asking = confirmations.confirmed('a', () => Promise.resolve({ granted: true }));
    await expect(asking).rejects.toMatchObject({ effect: 'unknown' });
  });

  it('follows a note of work that is done, where the lock is still held', async () => {
    const { server, confirmations } = replicated();
    const states = [1, 0, -1];
    const deployment = new ScriptedDeployment({ servers: [server], run: () => states.shift() });
    const periods = new Periods(callsOf(deployment), confirmations);
    const note = () => periods.remember({ name: 'a', owner: 'one:1', period: 1_000 });
    expect(await note()).toBe('held');
    expect(server.sent).toHaveLength(1);
    expect([await note(), await note()]).toEqual(['deleted', 'taken']);
    expect(server.sent).toHaveLength(1);
  });

  it('of several writes is asked for once at a time, and a failed one holds up no other', async () => {
    const answers: ((confirmed: number) => void)[] = [];
    const server = new ScriptedServer('a:1', () => new Promise((resolve) => answers.push(resolve)));
    const replication = new Replication({ replicas: 1, timeout: 100 });
    const asked = () => new Promise((resolve) => setImmediate(resolve));
    const first = replication.confirm(server);
    await asked();
    const others = [replication.confirm(server), replication.confirm(server)];
    await asked();
    expect(answers).toHaveLength(1);
    answers[0]?.(0);
    await expect(first).rejects.toMatchObject({ name: 'TooFewReplicas' });
    await asked();
    expect(answers).toHaveLength(2);
    answers[1]?.(1);
    await Promise.all(others);
    expect(server.sent).toHaveLength(2);
  });
});

describe('An acquisition', () => {
  const acquiring = (answer: (script: scripts.Script) => unknown) => {
    const deployment = new ScriptedDeployment({ run: ({ script }) => answer(script) });
    const calls = callsOf(deployment);
    return {
      deployment,
      commands: new AcquireCommands(deployment, calls, new Confirmations(undefined)),
    };
  };
  const REQUEST = { name: 'a', owner: 'one:1', leaseTime: 3_000 };

  it('gives up where the name is used as another kind again and again', async () => {
    const { deployment, commands } = acquiring((script) =>
      script === scripts.queueAcquire ? [-1, 'lock', 1] : [-3],
    );
    await expect(commands.acquire(REQUEST)).rejects.toMatchObject({ code: 'LOCK_KIND_MISMATCH', key: 'a' });
    expect(deployment.runs.length).toBeLessThan(20);
  });

  it('is asked for again once the other kind is over, and not where that is in use', async () => {
    const answers = [[-3], 17];
    const over = acquiring((script) => (script === scripts.queueAcquire ? [-1, 'lock', 1] : answers.shift()));
    expect(await over.commands.acquire(REQUEST)).toEqual({ granted: true, fencingToken: 17 });
    const used = acquiring((script) => (script === scripts.queueAcquire ? [-1, 'fair', 1] : [-3]));
    await expect(used.commands.acquire(REQUEST)).rejects.toMatchObject({ code: 'LOCK_KIND_MISMATCH' });
    expect(used.deployment.runs).toHaveLength(2);
  });

  it('is taken back by a release of its owner, as long as it is under way, and no other one is', async () => {
    const answers: ((token: number) => void)[] = [];
    const { deployment, commands } = acquiring(() => new Promise((resolve) => answers.push(resolve)));
    const first = commands.acquire(REQUEST);
    const second = commands.acquire({ ...REQUEST, name: 'b' });
    const other = commands.acquire({ ...REQUEST, owner: 'two:1' });
    await Promise.resolve();
    const unwanted = () => deployment.runs.map(({ acquisition }) => acquisition?.unwanted);
    answers[0]?.(1);
    await first;
    commands.takeBack('one:1');
    expect(unwanted()).toEqual([false, true, false]);
    answers[1]?.(2);
    await second;
    commands.takeBack('two:1');
    expect(unwanted()).toEqual([false, true, true]);
    answers[2]?.(3);
    await other;
  });
});

describe('A release that is answered over another connection', () => {
  const PLAIN = { kind: 'lock', mode: 'exclusive', capacity: 1 } as const;
  const releasing = (answer: (script: scripts.Script) => unknown) => {
    const deployment: ScriptedDeployment = new ScriptedDeployment({
      run: ({ script }) => {
        deployment.generation++;
        return answer(script);
      },
    });
    return new ReleaseCommands(deployment, callsOf(deployment), { takeBack: () => undefined });
  };

  it.each([1, 0, -1])('counts as done, for a copy of it may have come before: %d', async (answer) => {
    const commands = releasing((script) => (script === scripts.releaseAll ? [answer, answer] : answer));
    const release = (name: string, queue?: QueueTerms) => commands.release({ name, owner: 'one:1', queue });
    expect(await release('a')).toBe('released');
    expect(await release('a', { ...PLAIN, kind: 'fair' })).toBe('released');
    const all = commands.together(() => [release('a', PLAIN), release('b', PLAIN)]);
    expect(await Promise.all(all)).toEqual(['released', 'released']);
  });

  it('counts as done as well where the next owner goes with it', async () => {
    const next = { owner: 'one:2', leaseTime: 5_000 };
    const passed = releasing(() => [-1, 17, 0]).passOn({ name: 'a', owner: 'one:1' }, next);
    expect(await passed).toMatchObject({ released: 'released' });
  });
});
