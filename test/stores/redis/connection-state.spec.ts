import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { ConnectionChange } from '../../../lib/store/store-health.js';
import { stageOf } from '../../../lib/stores/redis/connection/connection-stage.js';
import { ConnectionState } from '../../../lib/stores/redis/connection/connection-state.js';
import { NotAdmitted, WrongDatabase } from '../../../lib/stores/redis/connection/redis-errors.js';
import { SentinelRound } from '../../../lib/stores/redis/connection/sentinel-round.js';
import { errorReply } from '../../doubles/replies.js';

beforeEach(() => {
  jest.useFakeTimers();
});

afterEach(() => {
  jest.useRealTimers();
});

describe('The state of a connection', () => {
  const open = () => {
    const state = new ConnectionState('node');
    const changes: ConnectionChange[] = [];
    state.onChange((change) => changes.push(change));
    return { state, changes };
  };
  /** Whether it has resolved by now. */
  const isOver = async (news: Promise<void>) => {
    let over = false;
    void news.then(() => (over = true));
    for (let n = 0; n < 5; n++) await Promise.resolve();
    return over;
  };

  it('is told once for each change, with the reason, and says which connection is the first', () => {
    const { state, changes } = open();
    expect(state.isDown).toBe(false);
    const reason = new Error('connect ECONNREFUSED');
    state.failed(reason);
    expect([state.lastError, changes]).toEqual([reason, []]);
    state.set(true);
    state.set(true);
    expect([state.isDown, state.lastError]).toEqual([false, undefined]);
    state.failed(reason);
    state.set(false);
    state.set(false);
    expect([state.isDown, state.lastError]).toEqual([true, reason]);
    state.set(true);
    expect(changes).toEqual([
      { node: 'node', connected: true, first: true, error: undefined },
      { node: 'node', connected: false, first: false, error: reason },
      { node: 'node', connected: true, first: false, error: undefined },
    ]);
  });

  it('that could not be made at all is down, and the first later one is no news of a first', () => {
    const { state, changes } = open();
    state.set(false);
    state.set(true);
    expect(changes.map(({ connected, first }) => [connected, first])).toEqual([
      [false, false],
      [true, false],
    ]);
  });

  it('waits for news until there are some, for no longer than its time', async () => {
    const { state } = open();
    const [first, second] = [state.news(1_000), state.news(2_000)];
    jest.advanceTimersByTime(999);
    expect(await isOver(first)).toBe(false);
    jest.advanceTimersByTime(1);
    expect([await isOver(first), await isOver(second)]).toEqual([true, false]);
    state.settle();
    expect(await isOver(second)).toBe(true);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('waits for nothing where the server does not let this client in, and is down then', async () => {
    const { state, changes } = open();
    const news = state.news(1_000);
    state.failed(new Error('connect ECONNREFUSED'));
    expect([await isOver(news), state.refusal]).toEqual([false, undefined]);
    state.failed(errorReply('WRONGPASS invalid username-password pair'));
    expect(await isOver(news)).toBe(true);
    expect(state.refusal).toBeInstanceOf(NotAdmitted);
    expect(changes).toMatchObject([
      { connected: false, error: { message: expect.stringContaining('WRONGPASS') } },
    ]);
    // What is no answer of the server is told as it is.
    const other = new WrongDatabase(3, 'switched');
    state.failed(other);
    expect(state.refusal).toBe(other);
  });

  it('shows no password that a failed command contains, and leaves that error to the application', () => {
    const { state } = open();
    const error = Object.assign(errorReply('WRONGPASS no'), { command: { name: 'auth', args: ['secret'] } });
    state.failed(error);
    expect(state.lastError).toMatchObject({
      name: 'ReplyError',
      message: 'WRONGPASS no',
      stack: error.stack,
    });
    expect(state.lastError).not.toHaveProperty('command');
    expect(error.command.args).toEqual(['secret']);
  });

  it('of a cluster is told by what the last of its nodes has said', () => {
    const { state } = open();
    const command = { name: 'auth', args: ['secret'] };
    const last = Object.assign(errorReply('NOAUTH no'), { command });
    state.failed(Object.assign(new Error('Failed to refresh slots cache.'), { lastNodeError: last }));
    expect(state.lastError).toMatchObject({ message: 'NOAUTH no' });
    expect(state.lastError).not.toHaveProperty('command');
    const bare = Object.assign(new Error('None of startup nodes is available'), { lastNodeError: null });
    state.failed(bare);
    expect(state.lastError).toBe(bare);
    state.failed('a text');
    expect(state.lastError).toBe('a text');
  });
});

describe('How far a connection has come', () => {
  const stage = (status: string, stream?: object) =>
    stageOf({ status, stream } as Parameters<typeof stageOf>[0]);
  const HANDSHAKE = { encrypted: true, connecting: false, destroyed: false };

  it('is that the server has not answered yet', () => {
    expect(stage('connect')).toBe('connect: the server has not answered yet');
    expect(stage('ready', { writable: true })).toBe('ready');
    expect(stage('ready', { writable: false })).toBe('ready: its connection has ended');
  });

  it('is that the handshake of TLS is not answered, where it has begun', () => {
    expect(stage('connecting', HANDSHAKE)).toBe('connecting: the server has not answered the TLS handshake');
    expect(stage('connecting')).toBe('connecting');
    expect(stage('connecting', { connecting: false, destroyed: false })).toBe('connecting');
    expect(stage('connecting', { ...HANDSHAKE, connecting: true })).toBe('connecting');
    expect(stage('connecting', { ...HANDSHAKE, destroyed: true })).toBe('connecting');
  });
});

describe('A round of all sentinels', () => {
  const refused = new Error('Could not connect because NOAUTH Authentication required.');
  const away = new Error('connect ECONNREFUSED');
  const unknown = new Error('Sentinel failed: invalid reply: null');
  const failed = (...answers: unknown[]) => {
    const round = new SentinelRound();
    for (const answer of answers) round.answered(answer);
    return round.failed();
  };

  it('that none answers says nothing', () => {
    expect(failed()).toBeUndefined();
    expect(failed('no error')).toBeUndefined();
  });

  it('says that the last sentinel knows no such master', () => {
    expect(failed(away, unknown)).toMatchObject({
      message: 'no sentinel knows a master of this name',
      cause: unknown,
    });
    expect(failed(new Error('ERR No such master with that name'))).toMatchObject({
      message: 'no sentinel knows a master of this name',
    });
  });

  it('is refused only if all sentinels refuse this client', () => {
    expect(failed(refused, refused)).toBeInstanceOf(NotAdmitted);
    expect(failed(away, refused)).toBe(refused);
    expect(failed(refused, away)).toBe(away);
  });

  it('counts from the last one, or from the last connection', () => {
    const round = new SentinelRound();
    round.answered(away);
    expect(round.failed()).toBe(away);
    expect(round.failed()).toBeUndefined();
    round.answered(away);
    round.succeeded();
    round.answered(refused);
    expect(round.failed()).toBeInstanceOf(NotAdmitted);
  });
});
