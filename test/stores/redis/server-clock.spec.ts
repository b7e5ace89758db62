import { describe, expect, it } from '@jest/globals';
import type { QueueMessage } from '../../../lib/store/queue-messages.js';
import { RedisLockStore } from '../../../lib/stores/redis/redis-lock-store.js';
import { ScriptedDeployment } from '../../doubles/scripted-deployment.js';
import { ServerClock } from '../../../lib/stores/redis/commands/server-clock.js';

const TEN_MINUTES = 600_000;

describe('ServerClock', () => {
  it('takes no date for later than it was', () => {
    const clock = new ServerClock();
    expect(clock.momentOf(50_000, 1_000)).toBe(-Infinity);
    // The command took 10 ms at the most, so a date is at most so much too early.
    clock.learn(50_000, 990, 1_000);
    expect(clock.momentOf(50_100, 1_200)).toBe(1_089);
    expect(clock.momentOf(50_100, 1_089)).toBe(1_089);
  });

  it.each([
    ['forward', 0, TEN_MINUTES],
    ['back and forward again', -TEN_MINUTES, 0],
  ])(
    'says that it does not know when the clock went %s, instead of taking an old message for a new one',
    (_, first, then) => {
      const clock = new ServerClock();
      clock.learn(50_000 + first, 1_000, 1_005);
      // Two seconds on its way: the process was paused, and what the message grants is over.
      expect(clock.momentOf(50_100 + then, 3_100)).toBe(-Infinity);
      clock.learn(52_150 + then, 3_150, 3_155);
      expect(clock.momentOf(52_200 + then, 3_300)).toBe(3_199);
    },
  );

  it('notices by a reply that the clock went forward by less than a message is late', () => {
    const clock = new ServerClock();
    clock.learn(50_000, 1_000, 1_001);
    // A slow reply says nothing of that.
    clock.learn(50_100, 1_050, 1_101);
    expect(clock.momentOf(50_200, 1_300)).toBe(1_199);
    // Forward by 800 ms.
    clock.learn(51_100, 1_300, 1_301);
    // What is granted now comes 850 ms late, and counts from when it was granted.
    expect(clock.momentOf(51_200, 2_250)).toBe(1_399);
  });
});

describe('The bound that a reply gives', () => {
  it('counts for a minute against replies that took longer, because clocks drift', () => {
    const clock = new ServerClock();
    clock.learn(50_000, 1_000, 1_001);
    // These took up to 20 ms, and so say less.
    clock.learn(110_019, 60_999, 61_019);
    expect(clock.momentOf(110_020, 61_100)).toBe(61_019);
    clock.learn(110_020, 61_000, 61_020);
    expect(clock.momentOf(110_020, 61_100)).toBe(60_999);
  });
});

describe('A grant by message', () => {
  const QUEUE = { kind: 'fair', mode: 'exclusive', capacity: 1, ownWriteHold: undefined } as const;

  it('is dated by no clock from before a lost connection: a promoted replica has another one', async () => {
    // Busy, by a clock of the server that says 50,000.
    const connection = new ScriptedDeployment({ run: () => [0, 50_000, '', 1_000, 1, 'other:1'] });
    let tell: (text: string) => void = () => undefined;
    const store = new RedisLockStore({
      connection,
      subscriptions: () => ({
        subscribe: (_, listener) => {
          tell = listener;
          return Promise.resolve({ active: true, close: () => undefined });
        },
        obstacle: () => Promise.resolve(undefined),
        close: () => Promise.resolve(),
      }),
      keyPrefix: 'lock:',
      clientWarnings: [],
      isMember: false,
    });
    const messages: QueueMessage[] = [];
    await store.queues.subscribe('one', (message) => messages.push(message));
    const entry = { arrival: undefined };
    await store.acquire({ name: 'a', owner: 'one:1', leaseTime: 1_000, queue: { ...QUEUE, entry } });
    const granted = 'granted one:1 17 50000 1000  0';
    tell(granted);
    connection.change(false);
    tell(granted);
    const isDated = (message: QueueMessage) =>
      message.type === 'granted' && Number.isFinite(message.grantedAt);
    expect(messages.map(isDated)).toEqual([true, false]);
  });
});
