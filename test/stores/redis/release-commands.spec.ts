import { describe, expect, it } from '@jest/globals';
import type { QueueTerms, ReleaseRequest } from '../../../lib/store/lock-store.js';
import { LockKeys } from '../../../lib/stores/redis/commands/keys.js';
import { ReleaseCommands } from '../../../lib/stores/redis/commands/release-commands.js';
import { ScriptCalls } from '../../../lib/stores/redis/commands/script-calls.js';
import * as scripts from '../../../lib/stores/redis/commands/script.js';
import { errorReply } from '../../doubles/replies.js';
import { type Run, ScriptedDeployment } from '../../doubles/scripted-deployment.js';

const STAY = 3_600_000;
const PLAIN: QueueTerms = { kind: 'lock', mode: 'exclusive', capacity: 1 };
const FORBIDDEN = errorReply("NOPERM can't run 'eval'");
const AWAY = new Error('away');

const keysOf = (name: string) => new LockKeys(name, 'lock:', '');

function open(
  run: (run: Run) => unknown = () => 1,
  parts: Omit<ConstructorParameters<typeof ScriptedDeployment>[0], 'run'> = {},
) {
  const deployment = new ScriptedDeployment({ ...parts, run });
  const takenBack: string[] = [];
  const commands = new ReleaseCommands(deployment, new ScriptCalls(deployment, 'lock:'), {
    takeBack: (owner) => takenBack.push(owner),
  });
  const release = (name: string, parts: Partial<ReleaseRequest> = {}) =>
    commands.release({ name, owner: 'one:1', ...parts });
  const given = (name: string, parts: Partial<ReleaseRequest> = {}) =>
    release(name, { queue: PLAIN, leaseTime: 3_000, ...parts });
  /** Each command: its script, and the locks that it is about. */
  const sent = () =>
    deployment.runs.map(({ script, keys }) => [
      script === scripts.release
        ? 'release'
        : script === scripts.releaseAll
          ? 'release all'
          : 'queue release',
      ...keys.filter((key) => !key.includes('~')),
    ]);
  return { deployment, commands, takenBack, release, given, sent };
}

describe('A release', () => {
  const argsOf = async (parts: Partial<ReleaseRequest>, isCluster = false) => {
    const { deployment, release } = open(() => 1, { isCluster });
    expect(await release('a', parts)).toBe('released');
    const [{ keys, args, script, acquisition } = {}] = deployment.runs;
    expect(acquisition).toBeUndefined();
    return { args, keys, script };
  };
  const head = ['one:1', 'PUBLISH', keysOf('a').channel];
  const { lock, fence, queued } = keysOf('a');

  it('of a plain lock has the arguments that it needs, and no more', async () => {
    expect(await argsOf({ leaseTime: 3_000 })).toEqual({
      args: [...head, 0, STAY],
      keys: [lock, fence],
      script: scripts.release,
    });
    expect(await argsOf({ fencingToken: 17 })).toMatchObject({ args: [...head, 17, STAY] });
    expect(await argsOf({ keepFor: 250 })).toMatchObject({ args: [...head, 0, STAY, 250, ''] });
  });

  it('gives up an entry, too, for which it names the lease', async () => {
    expect(await argsOf({ queue: PLAIN, leaseTime: 3_000 })).toMatchObject({
      args: [...head, 0, STAY, 0, 3_000],
      keys: queued,
    });
    expect(await argsOf({ queue: PLAIN, keepFor: 250 })).toMatchObject({ args: [...head, 0, STAY, 250, 0] });
  });

  it('on a cluster says so', async () => {
    const args = [...head, 0, STAY, 0, '', '', 0, 'cluster'];
    expect(await argsOf({}, true)).toMatchObject({ args, keys: [lock, fence] });
  });

  it('of another kind goes to the script of that', async () => {
    const queue = { kind: 'read-write', mode: 'shared', capacity: 9 } as const;
    expect(await argsOf({ queue, keepFor: 5, leaseTime: 7 })).toEqual({
      script: scripts.queueRelease,
      keys: queued,
      args: ['one:1', 's', 'read-write', 9, 5, 7, STAY, ''],
    });
    expect(await argsOf({ queue }, true)).toMatchObject({
      args: ['one:1', 's', 'read-write', 9, 0, 0, STAY, 'cluster'],
    });
  });

  it('takes back what its owner has asked for, before it is sent', async () => {
    const seen: boolean[] = [];
    const { takenBack, release, given, commands } = open(({ script, args }) => {
      seen.push(takenBack.includes(String(args[0])));
      return script === scripts.releaseAll ? [1, 1] : 1;
    });
    await release('a', { owner: 'one:1' });
    await release('a', { owner: 'two:1', queue: { ...PLAIN, kind: 'fair' } });
    await commands.together(() => given('a', { owner: 'three:1' }));
    await Promise.all(commands.together(() => ['a', 'b'].map((name) => given(name, { owner: 'four:1' }))));
    expect(seen).toEqual([true, true, true, true]);
  });

  it.each([1, 0, -1])('that is answered %d after another connection counts as done', async (answer) => {
    const { deployment, release, given, commands } = open(({ script }) => {
      deployment.generation++;
      return script === scripts.releaseAll ? [answer, answer] : answer;
    });
    expect(await release('a')).toBe('released');
    expect(await release('a', { queue: { ...PLAIN, kind: 'fair' } })).toBe('released');
    const all = commands.together(() => [given('a'), given('b')]);
    expect(await Promise.all(all)).toEqual(['released', 'released']);
  });

  it('tells the answer over the same connection', async () => {
    const answers = [0, -1, 1];
    const { release } = open(() => answers.shift());
    expect([await release('a'), await release('a'), await release('a')]).toEqual([
      'deleted',
      'taken',
      'released',
    ]);
  });
});

describe('A release with an entry for the next owner', () => {
  const next = { owner: 'one:2', leaseTime: 5_000 };
  const head = ['one:1', 'PUBLISH', keysOf('a').channel];

  it('is an acquisition, too', async () => {
    const { deployment, commands, takenBack } = open(() => [0, 17, 1]);
    expect(
      await commands.passOn({ name: 'a', owner: 'one:1', queue: PLAIN, leaseTime: 3_000 }, next),
    ).toEqual({
      released: 'deleted',
      next: { granted: true, fencingToken: 17, rivals: 'queued' },
    });
    expect(deployment.runs).toMatchObject([
      {
        script: scripts.release,
        args: [...head, 0, STAY, 0, 3_000, 'one:2', 5_000, ''],
        acquisition: { unwanted: false },
      },
    ]);
    expect(takenBack).toEqual(['one:1']);
  });

  it('has the arguments in their order without an entry of its own, and on a cluster', async () => {
    const { deployment, commands } = open(() => [1, 17, 0]);
    await commands.passOn({ name: 'a', owner: 'one:1' }, next);
    expect(deployment.runs[0]?.args).toEqual([...head, 0, STAY, 0, '', 'one:2', 5_000, '']);
    const cluster = open(() => [1, 17, 0], { isCluster: true });
    await cluster.commands.passOn({ name: 'a', owner: 'one:1' }, next);
    expect(cluster.deployment.runs[0]?.args.slice(-3)).toEqual(['one:2', 5_000, 'cluster']);
  });

  it('counts as done after another connection', async () => {
    const { deployment, commands } = open(() => {
      deployment.generation++;
      return [-1, 17, 0];
    });
    expect(await commands.passOn({ name: 'a', owner: 'one:1' }, next)).toMatchObject({
      released: 'released',
    });
  });
});

describe('Releases that are asked for together', () => {
  it('travel as one command', async () => {
    const { deployment, commands, given } = open(() => [1, 0, -1]);
    const released = commands.together(() => {
      const asked = ['a', 'b', 'c'].map((name) => given(name));
      expect(deployment.runs).toEqual([]);
      return asked;
    });
    expect(deployment.runs).toHaveLength(1);
    expect(await Promise.all(released)).toEqual(['released', 'deleted', 'taken']);
    const made = ['a', 'b', 'c'].map(keysOf);
    expect(deployment.runs[0]).toMatchObject({
      script: scripts.releaseAll,
      keys: [
        ...made.map(({ lock }) => lock),
        ...made.map(({ fence }) => fence),
        ...made.map(({ queue }) => queue),
      ],
      args: ['one:1', 'PUBLISH', STAY, 3_000, ''],
    });
  });

  it('name the channel of each lock where messages go to one node only', async () => {
    const { deployment, commands, given } = open(() => [1, 1], { isCluster: true, sharded: true });
    await Promise.all(
      commands.together(() => [given('a', { leaseTime: undefined }), given('b', { leaseTime: undefined })]),
    );
    expect(deployment.runs[0]?.args).toEqual([
      ...['one:1', 'SPUBLISH', STAY, 0, 'cluster'],
      ...['a', 'b'].map((name) => keysOf(name).shardChannel),
    ]);
  });

  it('travel apart where the owner, the lease or the place is another', async () => {
    const { commands, given, sent } = open(({ keys }) => (keys.length > 3 ? [1, 1] : 1), {
      groupOf: (key) => (key === keysOf('there').lock ? 2 : 1),
    });
    const released = commands.together(() => [
      given('a'),
      given('there'),
      given('b', { owner: 'two:1' }),
      given('c', { leaseTime: 5_000 }),
      given('d'),
    ]);
    expect(await Promise.all(released)).toEqual(released.map(() => 'released'));
    expect(sent()).toEqual([
      ['release all', 'lock:a', 'lock:d'],
      ...['there', 'b', 'c'].map((name) => ['release', `lock:${name}`]),
    ]);
  });

  it('are sent at once where more than the lock is given up', () => {
    const { commands, given, release, sent } = open();
    commands.together(() => {
      void given('a', { fencingToken: 17 });
      void given('b', { keepFor: 0 });
      void release('c');
      void release('d', { queue: { ...PLAIN, kind: 'fair' } });
      expect(sent()).toEqual([
        ['release', 'lock:a'],
        ['release', 'lock:b'],
        ['release', 'lock:c'],
        ['queue release', 'lock:d'],
      ]);
    });
    expect(sent()).toHaveLength(4);
  });

  it('are sent before a command that is not to overtake them, and with the outermost of several calls', () => {
    const { commands, given, sent } = open(({ keys }) => (keys.length > 3 ? [1, 1] : 1));
    commands.flush();
    commands.together(() => {
      void given('a');
      void given('b');
      commands.flush();
      expect(sent()).toEqual([['release all', 'lock:a', 'lock:b']]);
      commands.flush();
      void commands.together(() => Promise.all([given('c'), given('d')]));
      expect(sent()).toHaveLength(1);
    });
    expect(sent()).toEqual([
      ['release all', 'lock:a', 'lock:b'],
      ['release all', 'lock:c', 'lock:d'],
    ]);
    void given('e');
    expect(sent()).toHaveLength(3);
  });

  it('are sent although the caller fails', () => {
    const { commands, given, sent } = open();
    const failing = () => {
      void given('a');
      throw AWAY;
    };
    expect(() => commands.together(failing)).toThrow(AWAY);
    expect(sent()).toEqual([['release', 'lock:a']]);
    void given('b');
    expect(sent()).toHaveLength(2);
  });

  it('fail each by itself, and one that is withheld is sent alone to learn why', async () => {
    const { commands, given, sent } = open(({ keys }) =>
      keys.length > 3 ? [1, errorReply('WRONGTYPE no'), FORBIDDEN, AWAY] : -1,
    );
    const released = commands.together(() => ['a', 'b', 'c', 'd'].map((name) => given(name)));
    expect(await Promise.allSettled(released)).toMatchObject([
      { value: 'released' },
      { reason: { code: 'LOCK_KIND_MISMATCH', key: 'b' } },
      { value: 'taken' },
      { reason: { code: 'LOCK_UNAVAILABLE', key: 'd', effect: 'unknown' } },
    ]);
    expect(sent()).toEqual([
      ['release all', 'lock:a', 'lock:b', 'lock:c', 'lock:d'],
      ['release', 'lock:c'],
    ]);
  });

  it('fail together where the command does, each with its name', async () => {
    for (const answer of [AWAY, 'QUEUED']) {
      const { commands, given, sent } = open(() => answer);
      const released = commands.together(() => [given('a'), given('b')]);
      expect(await Promise.allSettled(released)).toMatchObject([
        { reason: { code: 'LOCK_UNAVAILABLE', key: 'a' } },
        { reason: { code: 'LOCK_UNAVAILABLE', key: 'b' } },
      ]);
      expect(sent()).toHaveLength(1);
    }
  });

  it('are sent one by one where the user may not send their script', async () => {
    const { commands, given, sent } = open(({ keys }) => (keys.length > 3 ? FORBIDDEN : 1));
    const released = commands.together(() => [given('a'), given('b')]);
    expect(await Promise.all(released)).toEqual(['released', 'released']);
    expect(sent().slice(1)).toEqual([
      ['release', 'lock:a'],
      ['release', 'lock:b'],
    ]);
  });
});
