import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { ConnectionChange } from '../../../lib/store/store-health.js';
import { ConnectionState } from '../../../lib/stores/redis/connection/connection-state.js';
import { NotAdmitted } from '../../../lib/stores/redis/connection/redis-errors.js';
import { SentinelRound } from '../../../lib/stores/redis/connection/sentinel-round.js';
import { errorReply } from '../../doubles/replies.js';

beforeEach(() => {
  jest.useFakeTimers();
});

describe('The state of a connection', () => {
  const open = () => {
    const state = new ConnectionState('node');
    const changes: ConnectionChange[] = [];
    state.onChange((change) => changes.push(change));
    return { state, changes };
  };

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
