import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Evaluator } from '../../../lib/stores/redis/commands/evaluator.js';
import type { Call } from '../../../lib/stores/redis/commands/lane.js';
import { acquire, inspect, lane } from '../../../lib/stores/redis/commands/script.js';
import { errorReply } from '../../doubles/replies.js';
import { ScriptedClient } from '../../doubles/scripted-client.js';

const WITHHELD = errorReply("NOPERM User default has no permissions to run the 'eval' command");
const NO_EVALSHA = errorReply("NOPERM User default has no permissions to run the 'evalsha' command");
const NO_SCRIPT = errorReply('NOSCRIPT No matching script.');
const REPLICA = errorReply("READONLY You can't write against a read only replica.");
const AWAY = new Error('away');

beforeEach(() => {
  jest.useFakeTimers();
});

afterEach(() => {
  jest.useRealTimers();
});

/** How many calls of lane.lua a command has; undefined of one script alone. */
const callsIn = (command: readonly unknown[]): number | undefined =>
  command[1] === lane.sha || command[1] === lane.source
    ? (JSON.parse(String(command.at(-1))) as unknown[]).length
    : undefined;

/** Answers all scripts, those of lane.lua one by one, with their number. */
const numbers = (command: readonly unknown[]) => {
  const count = callsIn(command);
  return count === undefined ? 1 : Array.from({ length: count }, (_, n) => n + 1);
};

interface Asked extends Partial<Pick<Call, 'script' | 'acquisition' | 'group' | 'until' | 'asking'>> {
  isAlone?: boolean;
}

function open(answer: (command: readonly unknown[]) => unknown = numbers) {
  const client = new ScriptedClient(answer);
  const refused: unknown[] = [];
  const state = {
    client: client.redis,
    commandTimeout: 1_000,
    usable: true,
    generation: 1,
    outage: () => AWAY,
    asked: () => undefined,
    lost: (_: number, cause?: unknown) => new Error('the connection was lost meanwhile', { cause }),
    refusedAsReplica: (error: unknown) => {
      refused.push(error);
    },
  };
  const evaluator = new Evaluator(state);
  const ask = (key: string, { isAlone = false, ...parts }: Asked = {}): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const call = { script: acquire, acquisition: undefined, group: 0, until: Infinity, asking: false };
      evaluator.run({ ...call, keys: [key], args: [key, 30], ...parts, resolve, reject }, isAlone);
    });
  const together = (...keys: string[]) => Promise.allSettled(keys.map((key) => ask(key)));
  return { client, refused, state, evaluator, ask, together };
}

/** The commands in short: which, and whether the script was whole, with how many calls. */
const sentBy = ({ sent }: ScriptedClient) =>
  sent.map((command) => {
    const count = callsIn(command);
    return `${String(command[0])} ${String(count ?? command[3])}`;
  });

/** Answers by hand, in the order of the commands. */
function byHand() {
  const answers: ((reply: unknown) => void)[] = [];
  return { answers, answer: () => new Promise((resolve) => answers.push(resolve)) };
}

describe('A call of a script', () => {
  it('that comes first does not wait, and those after it in the turn travel together', async () => {
    const { client, ask } = open();
    const replies = [ask('a'), ask('b'), ask('c')];
    expect(sentBy(client)).toEqual(['evalsha a']);
    expect(await Promise.all(replies)).toEqual([1, 1, 2]);
    expect(client.sent).toEqual([
      ['evalsha', acquire.sha, 1, 'a', 'a', 30],
      ['eval', lane.source, 2, 'b', 'c', JSON.stringify([1, 2].map((n) => ['acquire', 1, [' bc'[n], '30']]))],
    ]);
    void ask('d');
    expect(sentBy(client).at(-1)).toBe('evalsha d');
  });

  it('waits for the end of its turn while another is under way', async () => {
    const { answers, answer } = byHand();
    const { client, ask } = open(answer);
    void ask('a');
    await turn();
    void ask('b');
    expect(sentBy(client)).toEqual(['evalsha a']);
    await turn();
    expect(sentBy(client)).toEqual(['evalsha a', 'evalsha b']);
    answers[0]?.(1);
    await turn();
    void ask('c');
    expect(sentBy(client)).toHaveLength(2);
  });

  it('joins those that wait already, although none is under way any more', async () => {
    const { client, ask } = open();
    const first = ask('a');
    const others = [ask('b')];
    await first;
    others.push(ask('c'));
    expect(await Promise.all(others)).toEqual([1, 2]);
    expect(sentBy(client)).toEqual(['evalsha a', 'eval 2']);
  });

  it.each<[string, Asked]>([
    ['is to travel alone', { isAlone: true }],
    ['no lane can run', { script: inspect }],
  ])('that %s leaves at once, behind those that wait', async (_, parts) => {
    const { client, ask } = open();
    const replies = [ask('a'), ask('b'), ask('c', parts)];
    expect(sentBy(client)).toEqual(['evalsha a', 'evalsha b', 'evalsha c']);
    await Promise.all(replies);
  });

  it('leaves before a command that is sent past it', async () => {
    const { client, ask, evaluator } = open();
    const replies = [ask('a'), ask('b')];
    evaluator.flush();
    expect(sentBy(client)).toEqual(['evalsha a', 'evalsha b']);
    await Promise.all(replies);
  });

  it('of another slot travels apart, in the same write', async () => {
    const { client, ask } = open();
    const ways = [0, 0, 1, 0, 1].map((group, n) => ask(String(n), { group }));
    expect(await Promise.all(ways)).toEqual([1, 1, 1, 2, 2]);
    expect(sentBy(client)).toEqual(['evalsha 0', 'eval 2', 'evalsha 2']);
    expect(client.steps).toEqual(['cork', 'uncork']);
  });

  it('alone in its slot, or without a connection, needs no socket', async () => {
    const { client, ask, state, together } = open();
    await together('a', 'b', 'c');
    const lost = [0, 0, 1].map((group) => ask('d', { group }));
    state.usable = false;
    expect(await Promise.allSettled(lost)).toMatchObject([
      { status: 'fulfilled' },
      { reason: AWAY },
      { reason: AWAY },
    ]);
    expect(client.steps).toEqual([]);
    expect(client.sent).toHaveLength(3);
  });

  it('by ASKING leaves in one piece with that', async () => {
    const { client, ask } = open(([command]) => (command === 'asking' ? 'OK' : 17));
    expect(await ask('a', { asking: true })).toBe(17);
    expect(client.sent).toEqual([['asking'], ['evalsha', acquire.sha, 1, 'a', 'a', 30]]);
    client.answer = ([command]) =>
      command === 'asking' ? 'OK' : command === 'eval' ? 18 : errorReply('NOSCRIPT no');
    expect(await ask('a', { asking: true })).toBe(18);
    expect(client.sent.slice(4)).toEqual([['asking'], ['eval', acquire.source, 1, 'a', 'a', 30]]);
    client.answer = () => AWAY;
    await expect(ask('a', { asking: true })).rejects.toBe(AWAY);
  });
});

describe('The time of a call', () => {
  const timedOut = (ms: number) => ({
    reason: { message: expect.stringContaining(`within ${String(ms)} ms`) },
  });

  it.each([
    ['that of the connection', Infinity, 1_000],
    ['shorter where its caller has less', 300, 300],
    ['a moment where its caller has none left', -5, 1],
  ])('is %s', async (_, left, expected) => {
    const { ask } = open(() => new Promise(() => undefined));
    const asked = Promise.allSettled([ask('a', { until: performance.now() + left })]);
    await jest.advanceTimersByTimeAsync(1_100);
    expect(await asked).toMatchObject([timedOut(expected)]);
  });

  it('is the shortest of those that travel together', async () => {
    const { ask } = open(() => new Promise(() => undefined));
    const lefts = [900, 500, 400, 600];
    const asked = lefts.map((left) => ask('a', { until: performance.now() + left }));
    const ended = Promise.allSettled(asked);
    await turn();
    await jest.advanceTimersByTimeAsync(1_100);
    expect(await ended).toMatchObject([900, 400, 400, 400].map(timedOut));
  });

  it('over, no copy follows: a release may have gone after it', async () => {
    const { answers, answer } = byHand();
    const { client, ask } = open(answer);
    const asked = Promise.allSettled([ask('a')]);
    await jest.advanceTimersByTimeAsync(1_100);
    expect(await asked).toMatchObject([timedOut(1_000)]);
    answers[0]?.(NO_SCRIPT);
    await turn();
    expect(client.sent).toHaveLength(1);
  });

  it('does not begin anew where those that travelled together are sent one by one', async () => {
    for (const refusal of [WITHHELD, [WITHHELD, WITHHELD]]) {
      const { answers, answer } = byHand();
      const { client, together } = open(answer);
      const asked = together('a', 'b', 'c');
      await turn();
      await jest.advanceTimersByTimeAsync(400);
      answers[0]?.(1);
      answers[1]?.(refusal);
      await jest.advanceTimersByTimeAsync(0);
      expect(sentBy(client).slice(2)).toEqual(['evalsha b', 'evalsha c']);
      await jest.advanceTimersByTimeAsync(1_100);
      expect(await asked).toMatchObject([{ value: 1 }, timedOut(600), timedOut(600)]);
    }
  });
});

describe('A script that the server does not know', () => {
  const forgetful = (command: readonly unknown[]) =>
    command[0] === 'evalsha' ? NO_SCRIPT : numbers(command);

  it('is sent whole, and by its digest the next time', async () => {
    const { client, ask, evaluator } = open(forgetful);
    expect(await ask('a')).toBe(1);
    expect(client.sent[1]).toEqual(['eval', acquire.source, 1, 'a', 'a', 30]);
    expect(evaluator.digestless).toBe(false);
    await ask('b');
    expect(sentBy(client)).toEqual(['evalsha a', 'eval a', 'evalsha b', 'eval b']);
  });

  it('is sent whole only once', async () => {
    const { client, ask } = open(() => NO_SCRIPT);
    await expect(ask('a')).rejects.toBe(NO_SCRIPT);
    expect(client.sent).toHaveLength(2);
  });

  it('is not sent again for an acquisition that was given up meanwhile', async () => {
    const { client, ask } = open(forgetful);
    const acquisition = { unwanted: false };
    const asked = ask('a', { acquisition });
    acquisition.unwanted = true;
    await expect(asked).rejects.toMatchObject({ name: 'TakenBack' });
    expect(client.sent).toHaveLength(1);
  });

  it('is no proof that nothing was taken after a lost connection: the first copy may have been carried out', async () => {
    const { client, ask, state } = open(forgetful);
    const acquisition = { unwanted: false };
    const asked = ask('a', { acquisition });
    acquisition.unwanted = true;
    state.generation++;
    await expect(asked).rejects.toBe(NO_SCRIPT);
    expect(client.sent).toHaveLength(1);
  });

  it('is not sent over a connection that cannot be used any more', async () => {
    const { client, ask, state } = open(forgetful);
    const asked = ask('a');
    state.usable = false;
    await expect(asked).rejects.toBe(AWAY);
    expect(client.sent).toHaveLength(1);
  });

  it('is sent whole from then on where EVALSHA is withheld, each by itself, until the next connection', async () => {
    const { client, ask, evaluator, together } = open((command) =>
      command[0] === 'evalsha' ? NO_EVALSHA : numbers(command),
    );
    expect(await ask('a')).toBe(1);
    expect(evaluator.digestless).toBe(true);
    await together('b', 'c');
    expect(sentBy(client)).toEqual(['evalsha a', 'eval a', 'eval b', 'eval c']);
    evaluator.disconnected();
    expect(evaluator.digestless).toBe(false);
    await ask('d');
    expect(sentBy(client).slice(4)).toEqual(['evalsha d', 'eval d']);
  });
});

describe('Calls that travel together', () => {
  it('are sent whole the first time over a connection', async () => {
    const { client, evaluator, together } = open();
    await together('a', 'b', 'c');
    await together('d', 'e', 'f');
    evaluator.disconnected();
    await together('g', 'h', 'i');
    expect(sentBy(client)).toEqual([
      ...['evalsha a', 'eval 2', 'evalsha d', 'evalsha 2'],
      ...['evalsha g', 'eval 2'],
    ]);
  });

  it.each<[string, unknown]>([
    ['failed', AWAY],
    ['has an answer for another number of calls', [1]],
    ['has no list of answers', 'QUEUED'],
  ])('are sent whole again where the first command of them %s', async (_, answer) => {
    const { client, together } = open();
    client.answer = (command) => (callsIn(command) === undefined ? 1 : answer);
    const replies = await together('a', 'b', 'c');
    const reason = answer === AWAY ? AWAY : { name: 'UnexpectedReply', reply: answer };
    expect(replies).toMatchObject([{ value: 1 }, { reason }, { reason }]);
    client.answer = numbers;
    await together('d', 'e', 'f');
    expect(sentBy(client)).toEqual(['evalsha a', 'eval 2', 'evalsha d', 'eval 2']);
  });

  it('are not sent whole again because one alone has failed', async () => {
    const { client, ask, together } = open();
    await together('a', 'b', 'c');
    client.answer = () => WITHHELD;
    await expect(ask('d')).rejects.toBe(WITHHELD);
    client.answer = numbers;
    await together('e', 'f', 'g');
    expect(sentBy(client).slice(-1)).toEqual(['evalsha 2']);
  });

  it('are sent one by one where the user may not send their script, until the next connection', async () => {
    const { client, evaluator, together } = open((command) =>
      callsIn(command) === undefined ? (command[3] === 'c' ? WITHHELD : 1) : WITHHELD,
    );
    expect(await together('a', 'b', 'c')).toMatchObject([{ value: 1 }, { value: 1 }, { reason: WITHHELD }]);
    expect(sentBy(client)).toEqual(['evalsha a', 'eval 2', 'evalsha b', 'evalsha c']);
    client.answer = numbers;
    await together('d', 'e', 'f');
    expect(sentBy(client).slice(4)).toEqual(['evalsha d', 'evalsha e', 'evalsha f']);
    evaluator.disconnected();
    await together('g', 'h', 'i');
    expect(sentBy(client).slice(7)).toEqual(['evalsha g', 'eval 2']);
  });

  it('fail alone, and the one that is withheld is sent by itself to learn why', async () => {
    const wrong = errorReply('WRONGTYPE no');
    const forbidden = errorReply("ERR The user executing the script can't run this command or subcommand");
    const { client, refused, together } = open((command) =>
      callsIn(command) === undefined ? (command[3] === 'c' ? forbidden : 1) : [7, forbidden, wrong, REPLICA],
    );
    expect(await together('a', 'b', 'c', 'd', 'e')).toMatchObject([
      { value: 1 },
      { value: 7 },
      { reason: forbidden },
      { reason: wrong },
      { reason: REPLICA },
    ]);
    expect(sentBy(client)).toEqual(['evalsha a', 'eval 4', 'evalsha c']);
    expect(refused).toEqual([REPLICA]);
  });

  it('leave without those that were given up in the turn', async () => {
    const { client, ask } = open();
    const acquisitions = [1, 2, 3, 4].map(() => ({ unwanted: false }));
    const asked = acquisitions.map((acquisition, n) => ask(String(n), { acquisition }));
    for (const acquisition of acquisitions.slice(1, 3)) acquisition.unwanted = true;
    const taken = { reason: { name: 'TakenBack' } };
    expect(await Promise.allSettled(asked)).toMatchObject([{ value: 1 }, taken, taken, { value: 1 }]);
    expect(sentBy(client)).toEqual(['evalsha 0', 'evalsha 3']);
  });

  it('do not leave at all where all were given up', async () => {
    const { client, ask } = open();
    const acquisition = { unwanted: false };
    const asked = [ask('a'), ask('b', { acquisition }), ask('c', { acquisition })];
    acquisition.unwanted = true;
    const taken = { reason: { name: 'TakenBack' } };
    expect(await Promise.allSettled(asked)).toMatchObject([{ value: 1 }, taken, taken]);
    expect(client.sent).toHaveLength(1);
  });
});

describe('The answer to a call', () => {
  it('that the server is a replica is told to the connection', async () => {
    const { refused, ask } = open(() => REPLICA);
    await expect(ask('a')).rejects.toBe(REPLICA);
    expect(refused).toEqual([REPLICA]);
    const other = open(() => AWAY);
    await expect(other.ask('a')).rejects.toBe(AWAY);
    expect(other.refused).toEqual([]);
  });

  it.each<[string, unknown, unknown]>([
    ['a grant', 17, undefined],
    ['a refusal', AWAY, AWAY],
  ])(
    'of an acquisition over a connection that was lost meanwhile counts as none: %s',
    async (_, reply, cause) => {
      const { answers, answer } = byHand();
      const { ask, state } = open(answer);
      const asked = ask('a', { acquisition: { unwanted: false } });
      await turn();
      state.generation++;
      answers[0]?.(reply);
      const error = await asked.catch((reason: unknown) => reason as Error);
      expect(error).toMatchObject({ message: 'the connection was lost meanwhile' });
      expect((error as Error).cause).toBe(cause);
    },
  );

  it('of anything else counts', async () => {
    const { answers, answer } = byHand();
    const { ask, state } = open(answer);
    const asked = Promise.allSettled([ask('a'), ask('b', { isAlone: true })]);
    await turn();
    state.generation++;
    answers[0]?.(17);
    answers[1]?.(AWAY);
    expect(await asked).toMatchObject([{ value: 17 }, { reason: AWAY }]);
  });
});
