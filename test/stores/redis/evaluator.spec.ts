import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Evaluator } from '../../../lib/stores/redis/commands/evaluator.js';
import type { Call } from '../../../lib/stores/redis/commands/lane.js';
import { acquire, lane } from '../../../lib/stores/redis/commands/script.js';
import { errorReply } from '../../doubles/replies.js';
import { ScriptedClient } from '../../doubles/scripted-client.js';

const WITHHELD = errorReply("NOPERM User default has no permissions to run the 'eval' command");
const NO_SCRIPT = errorReply('NOSCRIPT No matching script.');
const AWAY = new Error('away');

beforeEach(() => {
  jest.useFakeTimers();
});

afterEach(() => {
  jest.restoreAllMocks();
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
  const state = {
    client: client.redis,
    commandTimeout: 1_000,
    usable: true,
    generation: 1,
    outage: () => AWAY,
    asked: () => undefined,
    answered: () => undefined,
    lost: (_: number, cause?: unknown) => new Error('the connection was lost meanwhile', { cause }),
    refusedAsReplica: () => undefined,
    carriedOut: () => undefined,
  };
  const evaluator = new Evaluator(state);
  const ask = (key: string, { isAlone = false, ...parts }: Asked = {}): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const call = { script: acquire, acquisition: undefined, group: 0, until: Infinity, asking: false };
      evaluator.run({ ...call, keys: [key], args: [key, 30], ...parts, resolve, reject }, isAlone);
    });
  const together = (...keys: string[]) => Promise.allSettled(keys.map((key) => ask(key)));
  return { client, state, evaluator, ask, together };
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

  it('ends for each command at its own moment, and a late answer to one is no answer to another', async () => {
    const { answers, answer } = byHand();
    const { ask } = open(answer);
    const endings: string[] = [];
    const watch = (key: string, call: Promise<unknown>) =>
      void call.then(
        () => endings.push(`${key} answered`),
        () => endings.push(`${key} late`),
      );
    for (const key of ['a', 'b', 'c']) {
      watch(key, ask(key, { isAlone: true }));
      await jest.advanceTimersByTimeAsync(300);
    }
    watch('d', ask('d', { isAlone: true, until: performance.now() + 50 }));
    await jest.advanceTimersByTimeAsync(60);
    expect(endings).toEqual(['d late']);
    await jest.advanceTimersByTimeAsync(60);
    answers[0]?.(1);
    answers[1]?.(1);
    await jest.advanceTimersByTimeAsync(600);
    expect(endings).toEqual(['d late', 'a late', 'b answered', 'c late']);
  });

  it('of one that a busy process finds overdue is not put off by the next one', async () => {
    const { ask } = open(() => new Promise(() => undefined));
    const endings: string[] = [];
    const present = performance.now.bind(performance);
    let stood = 0;
    jest.spyOn(performance, 'now').mockImplementation(() => present() + stood);
    ask('a', { isAlone: true }).catch(() => endings.push('a'));
    // No timer fires meanwhile.
    stood = 1_100;
    ask('b', { isAlone: true }).catch(() => endings.push('b'));
    await jest.advanceTimersByTimeAsync(10);
    expect(endings).toEqual(['a']);
  });

  it.each<[string, boolean]>([
    ['since then', false],
    ['in the meantime, and ended that', true],
  ])('is that of the present clock if a test has faked the timers %s', async (_, isOver) => {
    const { answers, answer } = byHand();
    const { ask } = open(answer);
    const fake = async () => {
      const present = performance.now();
      jest.useFakeTimers();
      // Both clocks show the same, so that only the timers differ.
      await jest.advanceTimersByTimeAsync(present - performance.now());
    };
    jest.useRealTimers();
    if (isOver) await fake();
    const first = ask('a');
    await turn();
    answers[0]?.(1);
    await first;
    if (isOver) jest.useRealTimers();
    else await fake();
    // A spy would hide that the timers are faked.
    const set = isOver ? jest.spyOn(globalThis, 'setTimeout') : undefined;
    const second = ask('b');
    expect(set?.mock.calls.length ?? jest.getTimerCount()).toBe(1);
    await turn();
    answers[1]?.(2);
    expect(await second).toBe(2);
  });

  it('keeps the process alive until the answer', async () => {
    const { answers, answer } = byHand();
    const { ask } = open(answer);
    const set = jest.spyOn(globalThis, 'setTimeout');
    const isKept = () => set.mock.results.map(({ value }) => (value as NodeJS.Timeout).hasRef());
    for (const number of [0, 1]) {
      const asked = ask('a');
      await turn();
      expect(isKept()).toEqual([true]);
      answers[number]?.(1);
      await asked;
      expect(isKept()).toEqual([false]);
    }
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
});

describe('The answer to a call', () => {
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
