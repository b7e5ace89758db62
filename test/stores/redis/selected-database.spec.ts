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

  it('is certain without a question where it is 0', async () => {
    for (const on of [{}, { db: 0 }, { db: 0, select: 0 }]) {
      const { asked, database } = open(on);
      expect(database.certain).toBe(true);
      await database.confirm();
      database.disconnected();
      expect([database.certain, asked]).toEqual([true, []]);
    }
  });

  it('is asked for once by all callers, and again after a lost connection', async () => {
    const { asked, database } = open({ db: 3 });
    expect(database.certain).toBe(false);
    await Promise.all([database.confirm(), database.confirm()]);
    expect([database.certain, asked]).toEqual([true, [3]]);
    database.disconnected();
    expect(database.certain).toBe(false);
    await database.confirm();
    await database.confirm();
    expect(asked).toEqual([3, 3]);
  });

  it('is the one that the application had chosen before, to which ioredis comes back', async () => {
    const { asked, database } = open({ db: 0, select: 3 });
    expect(database.certain).toBe(false);
    await database.confirm();
    expect(asked).toEqual([3]);
    // A client that would come back to another one is on database 0 only now.
    const back = open({ db: 3, select: 0 });
    expect(back.database.certain).toBe(false);
  });

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

  it('is another one after a switch of the application, until the server has confirmed that it is back', async () => {
    const { asked, client, database } = open({ select: 0 });
    const to = (select: number) => {
      client.condition = { select };
      database.switched();
    };
    to(2);
    expect(database.certain).toBe(false);
    await expect(database.confirm()).rejects.toMatchObject({
      name: 'WrongDatabase',
      message: expect.stringContaining('switched its client to database 2'),
    });
    to(0);
    expect(database.certain).toBe(false);
    await database.confirm();
    expect([database.certain, asked]).toEqual([true, [0]]);
  });

  it('says why the server has not confirmed it', async () => {
    const cause = errorReply('BUSY Redis is busy');
    await expect(open({ db: 3 }, () => cause).database.confirm()).rejects.toMatchObject({ cause });
  });

  it('is looked after here where the server refuses SELECT, and nothing else is', () => {
    const { database } = open({});
    expect(database.isOwnBusiness(Object.assign(errorReply('ERR'), { command: { name: 'select' } }))).toBe(
      true,
    );
    expect(database.isOwnBusiness(Object.assign(errorReply('ERR'), { command: { name: 'auth' } }))).toBe(
      false,
    );
    expect(database.isOwnBusiness(errorReply('ERR'))).toBe(false);
  });
});
