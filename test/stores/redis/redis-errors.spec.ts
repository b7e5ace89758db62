import { describe, expect, it } from '@jest/globals';
import { isLockKindMismatchError, isLockUnavailableError } from '../../../lib/api/error-guards.js';
import { CommandRefused, withCommand } from '../../../lib/stores/redis/connection/command-refused.js';
import {
  CommandTimeout,
  isPermanent,
  lacksEvalsha,
  NodeOfCluster,
  NotAdmitted,
  NotConnected,
  ofSingleServer,
  reasonOf,
  replyCode,
  TakenBack,
  TooFewReplicas,
  translate,
  UnexpectedReply,
  WrongDatabase,
} from '../../../lib/stores/redis/connection/redis-errors.js';
import { errorReply } from '../../doubles/replies.js';

/** As ioredis throws what a server refuses. */

/** As a server before Redis 7 wraps what a command inside of a script answers. */
const wrapped = (message: string) =>
  errorReply(`ERR Error running script (call to f_1): @user_script:2: @user_script: 2: ${message}`);

const NOT_LET_IN = new NotAdmitted(errorReply('NOAUTH Authentication required.'));
const OTHER_DATABASE = new WrongDatabase(3, errorReply('ERR DB index is out of range'));
const PART_OF_CLUSTER = new NodeOfCluster(errorReply('MOVED 1 127.0.0.1:7001'));

describe('What an error says of the command', () => {
  it.each<[string, unknown]>([
    ['it was not sent', new NotConnected('connecting', undefined)],
    ['it was given up before', new TakenBack()],
    ['the client is not let in', NOT_LET_IN],
    ['the database is another one', OTHER_DATABASE],
    ['the server is one of a cluster', PART_OF_CLUSTER],
    [
      'the user may not send it',
      errorReply("NOPERM this user has no permissions to run the 'evalsha' command"),
    ],
    ['the server does not know it', errorReply("ERR unknown command 'EVALSHA', with args beginning with: ")],
    ['the server is a replica', errorReply("READONLY You can't write against a read only replica.")],
    ['memory is full', errorReply("OOM command not allowed when used memory > 'maxmemory'.")],
    ['memory is full, before Redis 7', wrapped("-OOM command not allowed when used memory > 'maxmemory'.")],
    ['another script is busy', errorReply('BUSY Redis is busy running a script.')],
    ['the slot is being moved', errorReply('TRYAGAIN Multiple keys request during rehashing of slot')],
    ['the disk is full', errorReply('MISCONF Errors writing to the AOF file')],
    ['replicas are missing', errorReply('NOREPLICAS Not enough good replicas to write.')],
    ['the server loads its data', errorReply('LOADING Redis is loading the dataset in memory')],
  ])('nothing is changed where %s', (_, error) => {
    expect(translate(error, 'a')).toMatchObject({ code: 'LOCK_UNAVAILABLE', effect: 'refused' });
  });

  it.each<[string, unknown]>([
    ['no answer came', new CommandTimeout(500)],
    ['the answer is none', new UnexpectedReply('QUEUED')],
    ['the connection was closed', new Error('Connection is closed.')],
    ['a script failed in the middle', errorReply('ERR user_script:4: attempt to compare nil with number')],
    ['a command inside of a script was refused', errorReply('NOPERM ACL failure in script: no permissions')],
    [
      'a command inside of a script is not known',
      errorReply('ERR Unknown Redis command called from script script: f_1, on @user_script:2.'),
    ],
    ['replicas have not confirmed it', new TooFewReplicas(0, 1, 100)],
    ['it is no error', 'a text'],
  ])('it may have been carried out where %s', (_, error) => {
    expect(translate(error, 'a')).toMatchObject({ code: 'LOCK_UNAVAILABLE', effect: 'unknown' });
  });

  it('a key of another type is no lock', () => {
    const cause = errorReply('WRONGTYPE Operation against a key holding the wrong kind of value');
    const error = translate(cause, 'a');
    expect(isLockKindMismatchError(error)).toBe(true);
    expect(error).toMatchObject({ key: 'a', cause });
    expect(isLockKindMismatchError(translate(cause, undefined))).toBe(true);
    expect(isLockUnavailableError(translate(errorReply('ERR WRONGTYPE'), 'a'))).toBe(true);
  });
});

describe('Another try', () => {
  it.each<[string, unknown]>([
    ['a client that is not let in', NOT_LET_IN],
    ['another database', OTHER_DATABASE],
    ['a node of a cluster', PART_OF_CLUSTER],
    ['a password that is asked for', errorReply('NOAUTH Authentication required.')],
    ['a password that is wrong', errorReply('WRONGPASS invalid username-password pair')],
    [
      'a command that is forbidden',
      errorReply("NOPERM this user has no permissions to run the 'eval' command"),
    ],
    [
      'a command that is forbidden inside of a script',
      wrapped("The user executing the script can't run this"),
    ],
    ['a command that the server does not know', errorReply("ERR unknown command 'WAIT'")],
    [
      'a command inside of a script that the server does not know',
      new CommandRefused(errorReply('ERR Unknown Redis command called from script'), 'HSET'),
    ],
  ])('cannot help against %s', (_, error) => {
    expect(isPermanent(error)).toBe(true);
    expect(translate(error, 'a')).toMatchObject({ permanent: true });
  });

  it.each<[string, unknown]>([
    ['a lost connection', new NotConnected('close', undefined)],
    ['a missing answer', new CommandTimeout(500)],
    ['a failover', errorReply("READONLY You can't write against a read only replica.")],
    ['an error of a script', errorReply('ERR user_script:4: attempt to compare nil with number')],
    ['an error that only repeats such a text', new Error("ERR unknown command 'WAIT'")],
    ['what is no error', undefined],
  ])('may help against %s', (_, error) => {
    expect(isPermanent(error)).toBe(false);
    expect(translate(error, 'a')).toMatchObject({ permanent: false });
  });
});

describe('The code of a refusal', () => {
  it.each<[string | undefined, unknown]>([
    ['OOM', errorReply('OOM command not allowed')],
    ['OOM', wrapped('-OOM command not allowed')],
    ['NOPERM', errorReply("ERR The user executing the script can't run this command or subcommand")],
    ['NOPERM', errorReply('NOPERM ACL failure in script')],
    ['ERR', errorReply('ERR')],
    // Without a code of its own, what the script failed by is an ERR.
    ['ERR', wrapped('attempt to compare nil with number')],
    ['HSET', new CommandRefused(errorReply('HSET is what a proxy says'), 'HSET')],
    [undefined, errorReply('a proxy with a word of its own')],
    [undefined, new Error('OOM command not allowed')],
    [undefined, 'OOM command not allowed'],
  ])('is %s', (code, error) => {
    expect(replyCode(error)).toBe(code);
  });

  it('shows that EVALSHA alone is withheld', () => {
    const texts = [
      "NOPERM this user has no permissions to run the 'evalsha' command",
      "ERR unknown command 'EVALSHA', with args beginning with: ",
      'ERR unknown command `evalsha`, with args',
      "NOPERM this user has no permissions to run the 'eval' command",
      "ERR wrong number of arguments for 'evalsha' command",
    ];
    expect(texts.map((text) => lacksEvalsha(errorReply(text)))).toEqual([true, true, true, false, false]);
    expect(lacksEvalsha(new Error(texts[0]))).toBe(false);
  });

  it.each(['MOVED 1 127.0.0.1:7001', 'ASK 1 127.0.0.1:7001', 'CLUSTERDOWN no', 'CROSSSLOT no'])(
    'shows a client of a single server that it is one of a cluster: %s',
    (text) => {
      const error = ofSingleServer(errorReply(text));
      expect(error).toBeInstanceOf(NodeOfCluster);
      expect(error).toMatchObject({ message: expect.stringContaining(text) });
    },
  );
});

it('each error is known by its name in a log', () => {
  const lines = [
    new CommandTimeout(500.4),
    new NotConnected('end', undefined),
    new TakenBack(),
    NOT_LET_IN,
    OTHER_DATABASE,
    new UnexpectedReply('QUEUED'),
    PART_OF_CLUSTER,
    new TooFewReplicas(1, 2, 100),
    new CommandRefused(errorReply('NOPERM no'), 'HSET'),
  ].map(String);
  expect(lines).toEqual([
    'CommandTimeout: Redis did not answer within 500 ms',
    'NotConnected: not connected to Redis (end)',
    expect.stringMatching(/^TakenBack: /),
    'NotAdmitted: Redis does not let this client in: NOAUTH Authentication required.',
    'WrongDatabase: the connection is not on database 3: ERR DB index is out of range',
    expect.stringMatching(/^UnexpectedReply: .*"QUEUED"/),
    expect.stringMatching(/^NodeOfCluster: .*MOVED 1 127.0.0.1:7001$/),
    'TooFewReplicas: 1 of 2 replicas have confirmed it within 100 ms',
    'CommandRefused: Redis refuses HSET inside of a script: NOPERM no',
  ]);
  expect(String(new WrongDatabase(3, 'switched'))).toMatch(/database 3: switched$/);
});

it('a reason says what is wrong, and why there is no connection', () => {
  const refused = new Error('connect ECONNREFUSED');
  expect(reasonOf(new NotConnected('connecting', refused))).toBe(
    'not connected to Redis (connecting): connect ECONNREFUSED',
  );
  expect(reasonOf(new NotConnected('wait', undefined))).toBe('not connected to Redis (wait)');
  // Other errors say in their own text what has caused them.
  expect(reasonOf(new Error('own', { cause: refused }))).toBe('own');
  expect(reasonOf('a text')).toBe('a text');
});

describe('A refusal inside of a script', () => {
  const script = {
    source: "local a = 1\nredis.call('HSET', KEYS[1], 'a', 1)\nredis.pcall('PUBLISH', 'a', 'b')",
    sha: '',
    inLane: undefined,
  };

  it.each([
    ['HSET', wrapped("The user executing the script can't run this command or subcommand")],
    ['PUBLISH', errorReply('ERR Unknown Redis command called from script script: f_1, on @user_script:3.')],
    ['PUBLISH', errorReply('NOPERM ACL failure in script: no permissions, on @user_script:3.')],
    ['HDEL', errorReply("NOPERM ACL failure in script: User has no permissions to run the 'hdel' command")],
  ])('names the command %s by its name or its line', (command, error) => {
    const named = withCommand(error, script);
    expect(named).toBeInstanceOf(CommandRefused);
    expect(named).toMatchObject({
      message: expect.stringContaining(`refuses ${command} inside`),
      reply: error,
    });
  });

  it.each<[string, unknown]>([
    ['it is about something else', wrapped('-OOM command not allowed')],
    ['it says no line', errorReply('NOPERM ACL failure in script: no permissions')],
    ['the line has no command', errorReply('NOPERM ACL failure in script, on @user_script:1.')],
    ['there is no such line', errorReply('NOPERM ACL failure in script, on @user_script:9.')],
    ['it is no reply', new Error('NOPERM ACL failure in script, on @user_script:2.')],
  ])('stays as it is where %s', (_, error) => {
    expect(withCommand(error, script)).toBe(error);
  });
});
