import { describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { SelectedDatabase } from '../../../lib/stores/redis/connection/selected-database.js';
import { errorReply } from '../../doubles/replies.js';

describe('The database of a connection', () => {
  /** A client that is on a database, and a server that answers SELECT. */
  const open = (on: { db?: number; select?: number }, answer: () => unknown = () => 'OK') => {
    const asked: number[] = [];
    const client = {
      options: on.db === undefined ? {} : { db: on.db },
      condition: on.select === undefined ? undefined : { select: on.select },
      select: async (database: number) => {
        asked.push(database);
        const given = await Promise.resolve(answer());
        if (given instanceof Error) throw given;
        return given;
      },
    };
    return { asked, client, database: new SelectedDatabase(client as unknown as Redis, 1_000) };
  };

  it.each([
    ['the server refuses it', () => errorReply('ERR DB index is out of range'), 'WrongDatabase'],
    ['the user may not ask', () => errorReply("NOPERM can't run 'select'"), 'WrongDatabase'],
    ['the server is busy', () => errorReply('BUSY Redis is busy'), 'NotConnected'],
    ['the connection is lost', () => new Error('Connection is closed.'), 'NotConnected'],
    ['a transaction is open', () => 'QUEUED', 'NotConnected'],
  ])('is not certain where %s, and is asked for again', async (_, answer, name) => {
    let current: () => unknown = answer;
    const { asked, database } = open({ db: 3 }, () => current());
    await expect(database.confirm()).rejects.toMatchObject({ name });
    expect(database.certain).toBe(false);
    current = () => 'OK';
    await database.confirm();
    expect([database.certain, asked]).toEqual([true, [3, 3]]);
  });

  it('is not certain where the connection was lost, or switched, before the answer', async () => {
    for (const change of ['disconnected', 'switched'] as const) {
      const { database } = open({ db: 3 });
      const asking = database.confirm();
      database[change]();
      await expect(asking).rejects.toMatchObject({ name: 'NotConnected' });
      expect(database.certain).toBe(false);
    }
  });
});
