import { describe, expect, it } from '@jest/globals';
import type { AcquireRequest, QueueRequest } from '../../../lib/store/lock-store.js';
import { now } from '../../../lib/runtime/clock.js';
import { AcquireCommands } from '../../../lib/stores/redis/commands/acquire-commands.js';
import { Confirmations } from '../../../lib/stores/redis/commands/confirmations.js';
import { LockKeys } from '../../../lib/stores/redis/commands/keys.js';
import { ScriptCalls } from '../../../lib/stores/redis/commands/script-calls.js';
import * as scripts from '../../../lib/stores/redis/commands/script.js';
import { errorReply } from '../../doubles/replies.js';
import { type Run, ScriptedDeployment } from '../../doubles/scripted-deployment.js';

const STAY = 3_600_000;
const REQUEST = { name: 'a', owner: 'one:1', leaseTime: 3_000 };
const PLAIN: QueueRequest = {
  kind: 'lock',
  mode: 'exclusive',
  capacity: 1,
  entry: undefined,
  ownWriteHold: undefined,
};
const { lock, fence, queued } = new LockKeys('a', 'lock:', '');

function open(run: (run: Run) => unknown, isCluster = false) {
  const deployment = new ScriptedDeployment({ run, isCluster });
  const calls = new ScriptCalls(deployment, 'lock:');
  const commands = new AcquireCommands(deployment, calls, new Confirmations(undefined));
  return { deployment, calls, commands };
}

describe('An acquisition of a plain lock', () => {
  const sentFor = async (parts: Partial<AcquireRequest>, isCluster = false) => {
    const { deployment, commands } = open(() => 17, isCluster);
    expect(await commands.acquire({ ...REQUEST, ...parts })).toEqual({ granted: true, fencingToken: 17 });
    expect(deployment.runs).toMatchObject([{ script: scripts.acquire, acquisition: { unwanted: false } }]);
    return [deployment.runs[0]?.keys, deployment.runs[0]?.args];
  };
  const args = ['one:1', 3_000, 0, 3_000 + STAY];

  it('has the arguments that it needs, and no more', async () => {
    expect(await sentFor({})).toEqual([[lock, fence], args]);
    expect(await sentFor({ leastToken: 9 })).toEqual([
      [lock, fence],
      ['one:1', 3_000, 9, 3_000 + STAY],
    ]);
    expect(await sentFor({ queue: PLAIN })).toEqual([queued, args]);
    expect(await sentFor({}, true)).toEqual([
      [lock, fence],
      [...args, '', 'cluster'],
    ]);
  });

  it('asks for an entry, at the end of the queue or where it has been', async () => {
    const at = (arrival: number | undefined) => ({ queue: { ...PLAIN, entry: { arrival } } });
    expect(await sentFor(at(undefined))).toEqual([queued, [...args, 0, '']]);
    expect(await sentFor(at(5))).toEqual([queued, [...args, 5, '']]);
    expect(await sentFor(at(5), true)).toEqual([queued, [...args, 5, 'cluster']]);
  });

  it('learns the clock of the server from the answer to one that waits', async () => {
    const { commands, calls } = open(() => [250, 'two:1', 7, 50_000, 'node', 1]);
    expect(await commands.acquire({ ...REQUEST, queue: PLAIN })).toEqual({
      granted: false,
      retryAfter: 250,
      holder: 'two:1',
      arrival: 7,
      listen: true,
    });
    expect(calls.clocks.of('node').momentOf(50_000, now())).toBeGreaterThan(-Infinity);
  });

  it('asks as often as it has names and a few times more where another kind is in the way', async () => {
    const { deployment, commands } = open(({ script }) =>
      script === scripts.retire ? [0, 'fair', 1] : [-3],
    );
    await expect(commands.acquire(REQUEST)).rejects.toMatchObject({
      code: 'LOCK_KIND_MISMATCH',
      message: expect.stringMatching(/a plain lock: .* a fair lock /),
    });
    expect(deployment.runs).toHaveLength(2 * 5);
    expect(deployment.runs[1]).toMatchObject({
      keys: queued,
      args: [STAY, ''],
      acquisition: { unwanted: false },
    });
  });
});

describe('An acquisition of several locks', () => {
  const GROUP = { names: ['a', 'b'], owner: 'one:1', leaseTime: 3_000 };
  const other = new LockKeys('b', 'lock:', '');

  it('is one command, with a token for each', async () => {
    const { deployment, commands } = open(() => [17, 18]);
    expect(await commands.acquireAll({ ...GROUP, leastToken: 9 })).toEqual({
      granted: true,
      fencingTokens: [17, 18],
    });
    await commands.acquireAll(GROUP);
    expect(deployment.runs).toMatchObject([
      {
        script: scripts.acquireAll,
        keys: [lock, other.lock, fence, other.fence],
        args: ['one:1', 3_000, 9, 3_000 + STAY],
      },
      { args: ['one:1', 3_000, 0, 3_000 + STAY] },
    ]);
  });

  it('looks at the name that was another kind, and no other one', async () => {
    const answers: unknown[] = [
      [-2, -3],
      [0, 'fair', 1],
      [17, 18],
    ];
    const { deployment, commands } = open(() => answers.shift(), true);
    expect(await commands.acquireAll(GROUP)).toMatchObject({ granted: true });
    expect(deployment.runs[1]).toMatchObject({
      script: scripts.retire,
      keys: other.queued,
      args: [STAY, 'cluster'],
    });
  });
});

describe('An acquisition of another kind', () => {
  const FAIR: QueueRequest = { ...PLAIN, kind: 'fair' };
  const args = ['one:1', 'x', 'fair', 1, 3_000, 0, 0, '', STAY, ''];
  const ask = (queue: QueueRequest, answer: unknown, isCluster = false) => {
    const made = open(() => answer, isCluster);
    return { ...made, reply: made.commands.acquire({ ...REQUEST, queue }) };
  };

  it('enters the queue with its terms', async () => {
    const { deployment, calls, reply } = ask(FAIR, [1, 50_000, 'node', 17]);
    expect(await reply).toEqual({ granted: true, fencingToken: 17 });
    expect(deployment.runs).toEqual([
      { script: scripts.queueAcquire, keys: queued, args, acquisition: { unwanted: false } },
    ]);
    expect(calls.clocks.of('node').momentOf(50_000, now())).toBeGreaterThan(-Infinity);
    const shared = { kind: 'read-write', mode: 'shared', capacity: 9 } as const;
    const other = ask({ ...shared, entry: { arrival: 5 }, ownWriteHold: 'one:2' }, [1, 1, '', 17], true);
    await other.reply;
    expect(other.deployment.runs[0]?.args).toEqual([
      ...['one:1', 's', 'read-write', 9, 3_000, 1, 5, 'one:2'],
      ...[STAY, 'cluster'],
    ]);
    const last = ask({ ...FAIR, entry: { arrival: undefined } }, [1, 1, '', 17]);
    await last.reply;
    expect(last.deployment.runs[0]?.args.slice(5, 7)).toEqual([1, 0]);
  });

  it('tells which kind the name is in use as', async () => {
    await expect(ask(FAIR, [-1, 'semaphore', 4]).reply).rejects.toMatchObject({
      code: 'LOCK_KIND_MISMATCH',
      key: 'a',
      message: expect.stringMatching(/a fair lock: .* a semaphore with 4 permits /),
    });
    await expect(ask(FAIR, errorReply('OOM no')).reply).rejects.toMatchObject({
      code: 'LOCK_UNAVAILABLE',
      key: 'a',
      effect: 'refused',
    });
  });
});

describe('The acquisitions of one owner', () => {
  it('are taken back by its release, but for those that are over, however they have ended', async () => {
    const answers: ((answer: unknown) => void)[] = [];
    const { deployment, commands } = open(() => new Promise((resolve) => answers.push(resolve)));
    const asked = Promise.allSettled(
      ['a', 'b', 'c', 'd'].map((name) => commands.acquire({ ...REQUEST, name })),
    );
    const settled = () => new Promise(setImmediate);
    await settled();
    answers[1]?.(17);
    answers[2]?.(new Error('away'));
    await settled();
    commands.takeBack('one:1');
    commands.takeBack('two:1');
    expect(deployment.runs.map(({ acquisition }) => acquisition?.unwanted)).toEqual([
      true,
      false,
      false,
      true,
    ]);
    answers[0]?.(17);
    answers[3]?.(17);
    expect(await asked).toMatchObject([{}, {}, { reason: { code: 'LOCK_UNAVAILABLE', key: 'c' } }, {}]);
  });

  it('are none any more once the last of them is over', async () => {
    const { deployment, commands } = open(() => 17);
    await commands.acquire(REQUEST);
    commands.takeBack('one:1');
    expect(deployment.runs).toMatchObject([{ acquisition: { unwanted: false } }]);
  });
});
