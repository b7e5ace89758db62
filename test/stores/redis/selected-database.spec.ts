import { describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { onDatabaseSwitch } from '../../../lib/stores/redis/database-switches.js';
import { SelectedDatabase } from '../../../lib/stores/redis/selected-database.js';
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
    for (const change of [
      (one: SelectedDatabase) => {
        one.disconnected();
      },
      (one: SelectedDatabase) => one.switchedTo(5)?.(false),
    ]) {
      const { database } = open({ db: 3 });
      const asking = database.confirm();
      change(database);
      await expect(asking).rejects.toMatchObject({ name: 'NotConnected' });
      expect(database.certain).toBe(false);
    }
  });

  it('is another one after a switch of the application, until it has switched back', async () => {
    const { asked, database } = open({});
    const answered = database.switchedTo(2);
    expect(database.certain).toBe(false);
    answered?.(false);
    await expect(database.confirm()).rejects.toMatchObject({
      name: 'WrongDatabase',
      message: expect.stringContaining('switched its client to database 2'),
    });
    const back = database.switchedTo(0);
    // Neither is known before the server has answered: the switch may be part of a transaction.
    await expect(database.confirm()).rejects.toMatchObject({ name: 'NotConnected' });
    back?.(false);
    await database.confirm();
    expect([database.certain, asked]).toEqual([true, [0]]);
  });

  it('stays where it was after a refused switch', async () => {
    const { database } = open({});
    const [two, three] = [database.switchedTo(2), database.switchedTo(3)];
    three?.(true);
    two?.(true);
    await database.confirm();
    expect(database.certain).toBe(true);
  });

  it('is the last of several switches that the server has carried out, in whatever order they are answered', async () => {
    const { database } = open({});
    const [two, zero, three] = [2, 0, 3].map((target) => database.switchedTo(target));
    zero?.(false);
    two?.(true);
    three?.(true);
    await database.confirm();
    expect(database.certain).toBe(true);
  });

  it('is no other one by a switch to itself', () => {
    const { database } = open({});
    expect(database.switchedTo(0)).toBeUndefined();
    expect(database.certain).toBe(true);
    // Unless the switch that has led there may be refused.
    const there = open({});
    there.database.switchedTo(2);
    expect(there.database.switchedTo(2)).toBeDefined();
  });

  it('of the next connection is not touched by an answer to the last one', async () => {
    const { database } = open({});
    const answered = database.switchedTo(2);
    database.disconnected();
    answered?.(false);
    expect(database.certain).toBe(true);
    await database.confirm();
  });

  it('is asked for again where the application had switched the connection that was lost', async () => {
    const { asked, database } = open({ db: 3 });
    database.switchedTo(2)?.(false);
    database.disconnected();
    await database.confirm();
    expect([database.certain, asked]).toEqual([true, [3]]);
  });

  it('is the same after a switch to where the last one has led', () => {
    const { database } = open({});
    database.switchedTo(2)?.(false);
    expect(database.switchedTo(2)).toBeUndefined();
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

describe('The switches of an application', () => {
  interface Sent {
    name: string;
    args: unknown[];
    resolve: (reply: unknown) => void;
    reject: (error: Error) => void;
  }
  /** A client whose commands are answered by hand. */
  const open = () => {
    const sent: Sent[] = [];
    const client = { sendCommand: (command: Sent) => sent.push(command) };
    const redis = client as unknown as Redis;
    const switches: string[] = [];
    const watch = (name = '') =>
      onDatabaseSwitch(redis, (database) => {
        switches.push(`${name}${String(database)}`);
        return (isRefused) => switches.push(`${name}${String(database)} ${isRefused ? 'refused' : 'done'}`);
      });
    const heard: unknown[] = [];
    const send = (name: string, ...args: unknown[]): Sent => {
      const command: Sent = {
        name,
        args,
        resolve: (given) => heard.push(given),
        reject: (error) => heard.push(error.message),
      };
      client.sendCommand(command);
      return command;
    };
    return { client, redis, sent, switches, watch, send, heard };
  };

  it('are told before they leave, and when they are answered, and reach the application', () => {
    const { sent, switches, watch, send, heard } = open();
    watch();
    const two = send('select', '2');
    const reset = send('RESET');
    send('get', 'key');
    expect(switches).toEqual(['2', '0']);
    expect(sent.map(({ name }) => name)).toEqual(['select', 'RESET', 'get']);
    two.resolve('OK');
    reset.reject(errorReply('NOPERM no'));
    expect(switches.slice(2)).toEqual(['2 done', '0 refused']);
    expect(heard).toEqual(['OK', 'NOPERM no']);
  });

  it('have no answer where the connection was lost: the server may have carried them out', () => {
    const { switches, watch, send, heard } = open();
    watch();
    send('select', '2').reject(new Error('Connection is closed.'));
    expect(switches).toEqual(['2']);
    expect(heard).toEqual(['Connection is closed.']);
  });

  it('are refused where they have not left', () => {
    const { client, switches, watch, send } = open();
    client.sendCommand = (command) => {
      command.reject(new Error("Stream isn't writeable"));
      return 0;
    };
    watch();
    send('select', '2');
    expect(switches).toEqual(['2', '2 refused']);
  });

  it('inside of a transaction are done with it, each by its place', () => {
    const { switches, watch, send } = open();
    watch();
    send('multi').resolve('OK');
    send('set', 'key', 'value').resolve('QUEUED');
    send('select', '2').resolve('QUEUED');
    send('get', 'key').resolve('QUEUED');
    send('select', '99').resolve('QUEUED');
    send('exec').resolve(['OK', 'OK', 'value', errorReply('ERR DB index is out of range')]);
    expect(switches).toEqual(['2', '99', '2 done', '99 refused']);
    send('select', '3').resolve('OK');
    expect(switches.slice(4)).toEqual(['3', '3 done']);
  });

  it.each<[string, string, unknown]>([
    ['discarded', 'discard', 'OK'],
    ['not carried out', 'exec', null],
  ])('inside of a transaction that is %s are refused', (_, end, answer) => {
    const { switches, watch, send } = open();
    watch();
    send('multi').resolve('OK');
    send('select', '2').resolve('QUEUED');
    send(end).resolve(answer);
    expect(switches).toEqual(['2', '2 refused']);
  });

  it('that the server does not put into a transaction have their own answer', () => {
    const { switches, watch, send } = open();
    watch();
    send('multi').reject(errorReply('ERR'));
    send('select', '2').resolve('OK');
    send('exec').reject(errorReply('ERR EXEC without MULTI'));
    expect(switches).toEqual(['2', '2 done']);
  });

  it('of a transaction are answered once, and an end without a beginning ends nothing', () => {
    const { switches, watch, send } = open();
    watch();
    send('exec').reject(errorReply('ERR EXEC without MULTI'));
    send('multi').resolve('OK');
    send('select', '2').resolve('QUEUED');
    send('exec').resolve(['OK']);
    send('exec').reject(errorReply('ERR EXEC without MULTI'));
    expect(switches).toEqual(['2', '2 done']);
  });

  it('are watched once for all services, until the last of them stops', () => {
    const { client, switches, watch, send } = open();
    const own = client.sendCommand;
    const stops = [watch('a '), watch('b ')];
    const watched = client.sendCommand;
    send('select', '2').resolve('OK');
    expect(switches).toEqual(['a 2', 'b 2', 'a 2 done', 'b 2 done']);
    stops[0]?.();
    stops[0]?.();
    expect(client.sendCommand).toBe(watched);
    send('select', '3');
    expect(switches.slice(4)).toEqual(['b 3']);
    stops[1]?.();
    expect(client.sendCommand).toBe(own);
    send('select', '4');
    expect(switches).toHaveLength(5);
    watch('c ');
    send('select', '5');
    expect(switches.slice(5)).toEqual(['c 5']);
  });

  it('leave a function alone that the application has put in front', () => {
    const { client, watch } = open();
    const stop = watch();
    const front = () => 0;
    client.sendCommand = front;
    stop();
    expect(client.sendCommand).toBe(front);
  });

  it('leave nothing on a client whose function is that of its class', () => {
    class Client {
      sendCommand() {
        return 0;
      }
    }
    const client = new Client();
    const stop = onDatabaseSwitch(client as unknown as Redis, () => undefined);
    expect(Object.hasOwn(client, 'sendCommand')).toBe(true);
    stop();
    expect(Object.hasOwn(client, 'sendCommand')).toBe(false);
  });
});
