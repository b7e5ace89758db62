import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis, type RedisOptions } from 'ioredis';
import { Redis as Redis5 } from 'ioredis-5';
import { isLockUnavailableError, type LockEvent, type RedisConnection } from '../../../../lib/index.js';
import { TestEnvironment } from '../../../support/test-environment.js';
import { until } from '../../../scenarios/until.js';
import { runProgram } from '../../../scenarios/program.js';
import { DEAD_PORT } from '../../../support/free-port.js';
import { SentinelDeployment } from '../../../support/sentinel.js';
import { Worker } from '../../../support/worker.js';
import { LogLines } from '../log-lines.js';

const environment = new TestEnvironment();
let deployment: SentinelDeployment;
let logs: LogLines;

beforeAll(async () => {
  deployment = await SentinelDeployment.start();
});

beforeEach(() => {
  logs = new LogLines();
});

afterEach(async () => {
  await environment.end();
  logs.stop();
});

afterAll(() => deployment.stop());

/** The client of an application: for TypeScript the two versions are two classes. */
const clientOf = (client: object): Redis => environment.clientWithListener(client as Redis);

/** Without these the service warns of the client. */
const CAREFUL = {
  sentinelCommandTimeout: 2_000,
  sentinelReconnectStrategy: () => 500,
  commandTimeout: 5_000,
  autoResendUnfulfilledCommands: false,
  failoverDetector: true,
  disconnectTimeout: 0,
};

const WAYS: [string, (options: RedisOptions) => RedisConnection][] = [
  ['options', (options) => options],
  ['a client of ioredis 6', (options) => clientOf(new Redis({ ...CAREFUL, ...options } as object))],
  ['a client of ioredis 5', (options) => clientOf(new Redis5({ ...CAREFUL, ...options } as object))],
];

const CASES: [string, RegExp, () => Promise<RedisOptions>][] = [
  [
    'a name that no sentinel knows',
    /no sentinel knows/,
    async () => ({ ...deployment.connection, name: 'other' }),
  ],
  [
    'a password that no sentinel takes',
    /WRONGPASS/,
    async () => ({
      ...deployment.connection,
      sentinelUsername: 'nobody',
      sentinelPassword: 'pass-4711-word',
    }),
  ],
  [
    'sentinels that are all dead',
    /ECONNREFUSED|Connection is closed/,
    async () => ({ name: 'locks', sentinels: [{ host: '127.0.0.1', port: DEAD_PORT }] }),
  ],
];

describe.each(WAYS)('Sentinel by %s', (way, connect) => {
  it.each(CASES)(
    'with %s: one line and one event tell so, and each lock why',
    async (_case, reason, options) => {
      const locks = environment.service({ connection: connect(await options()), leaseTime: 6_000 });
      const events: LockEvent[] = [];
      locks.events$.subscribe((event) => events.push(event));
      const error: unknown = await locks
        .acquire('key', { waitTime: 5_000 })
        .catch((thrown: unknown) => thrown);
      expect(isLockUnavailableError(error)).toBe(true);
      const cause = (error as Error).cause as Error;
      expect(`${cause.message} ${String(cause.cause)}`).toMatch(reason);
      const { status, nodes } = await locks.health();
      expect([status, nodes[0]?.error]).toEqual(['down', expect.stringMatching(reason)]);
      await until(() => events.length > 0 && logs.lines.length > 0);
      await sleep(500); // several rounds
      expect(events.map(({ type }) => type)).toEqual(['disconnected']);
      expect(logs.lines).toEqual([expect.stringMatching(reason)]);
      expect(logs.lines[0]).toMatch(/^No connection to sentinel /);
      expect(logs.lines[0]).not.toContain('pass-4711-word');
      // Of its own accord ioredis does not tell why.
      if (way === 'options') expect(logs.lines[0]).not.toContain('Connection is closed');
    },
  );
});

const PASSWORD = 'pass-4711-word';

/** Lets new connections to the sentinels in without a password, or refuses them. */
async function sentinelsAsk(password: string | undefined, ports = deployment.ports): Promise<void> {
  for (const port of ports) {
    const sentinel = new Redis({ port, password: PASSWORD, protocol: 2, lazyConnect: true });
    sentinel.on('error', () => undefined);
    // Where `default` needs none, a password is no hindrance.
    await sentinel.acl(
      'SETUSER',
      'default',
      ...(password === undefined ? ['nopass'] : ['resetpass', `>${password}`]),
    );
    sentinel.disconnect();
  }
}

const REFUSED: [string, RegExp, RedisOptions, spoil: () => Promise<unknown>, mend: () => Promise<unknown>][] =
  [
    [
      'the sentinels ask for a password',
      /^Redis does not let this client in: .*sentinel.* NOAUTH/,
      {},
      () => sentinelsAsk(PASSWORD),
      () => sentinelsAsk(undefined),
    ],
    [
      'the sentinels refuse the password',
      /^Redis does not let this client in: .*sentinel.* WRONGPASS/,
      { sentinelUsername: 'nobody', sentinelPassword: PASSWORD },
      async () => undefined,
      async () => undefined,
    ],
    [
      'the master asks for a password',
      /^Redis does not let this client in: NOAUTH/,
      {},
      async () => (await deployment.master()).client().config('SET', 'requirepass', PASSWORD),
      async () => (await deployment.master()).client().config('SET', 'requirepass', ''),
    ],
    [
      'the master refuses the password',
      /^Redis does not let this client in: WRONGPASS/,
      { username: 'nobody', password: PASSWORD },
      async () => undefined,
      async () => undefined,
    ],
  ];

describe.each(WAYS)('Sentinel by %s', (_way, connect) => {
  it.each(REFUSED)(
    '%s: a lock is refused for good, also to a caller that would wait for ever',
    async (_case, reason, options, spoil, mend) => {
      await spoil();
      try {
        const locks = environment.service({
          connection: connect({ ...deployment.connection, ...options }),
        });
        const error: unknown = await locks
          .acquire('key', { waitTime: Infinity })
          .catch((thrown: unknown) => thrown);
        expect(error).toMatchObject({ code: 'LOCK_UNAVAILABLE', permanent: true, effect: 'refused' });
        expect((error as Error).cause).toMatchObject({ message: expect.stringMatching(reason) });
        await mend();
        if (Object.keys(options).length > 0) return;
        await until(async () => (await locks.health()).status === 'up');
        await (await locks.acquire('key')).release();
      } finally {
        await mend();
      }
    },
  );
});

describe('One dead sentinel among live ones', () => {
  const VERSIONS = [
    ['of options', '({ connection })'],
    ['of a client of ioredis 6', "({ connection: client(new (await import('ioredis')).Redis(connection)) })"],
    [
      'of a client of ioredis 5',
      "({ connection: client(new (await import('ioredis-5')).Redis(connection)) })",
    ],
  ] as const;

  // In a process of its own, because ioredis does not take an error for one that is from outside of Jest's own world.
  it.each(VERSIONS)('%s: locks and wakes, and writes nothing', async (_, options) => {
    const connection = {
      ...deployment.connection,
      sentinels: [{ host: '127.0.0.1', port: DEAD_PORT }, ...(deployment.connection.sentinels ?? [])],
    };
    const program = `
      const written = [];
      console.error = (...parts) => written.push(parts.join(' '));
      const connection = ${JSON.stringify(connection)};
      const clients = [];
      const client = (own) => { clients.push(own); own.on('error', () => undefined); return own; };
      const [one, two] = [new LockService(${options}), new LockService(${options})];
      const lease = await one.acquire('key');
      const waiting = two.acquire('key');
      while ((await one.inspect('key')).waiters.processes === 0) await new Promise(setImmediate);
      await lease.release();
      await (await waiting).release();
      await new Promise((resolve) => setTimeout(resolve, 300));
      await Promise.all([one, two].map((locks) => locks.onApplicationShutdown()));
      for (const own of clients) own.disconnect();
      console.log(JSON.stringify(written));
    `;
    const output = await runProgram(program, { patience: 60_000 });
    expect(JSON.parse(output.split('\n').at(-1) ?? '')).toEqual([]);
  });
});

describe.each(WAYS)('Sentinel by %s', (way, connect) => {
  it('whose user may not hear of a failover: health says so, and one line', async () => {
    for (const port of deployment.ports) {
      const sentinel = new Redis({ port, protocol: 2 });
      await sentinel.acl('SETUSER', 'deaf', 'reset', 'on', `>${PASSWORD}`, '+@all');
      sentinel.disconnect();
    }
    const user = { sentinelUsername: 'deaf', sentinelPassword: PASSWORD };
    const locks = environment.service({ connection: connect({ ...deployment.connection, ...user }) });
    await (await locks.acquire('key')).release();
    // A connection that is being made may hear of it yet.
    await until(async () => (await locks.health()).status !== 'up');
    const { status, nodes } = await locks.health();
    expect([status, nodes[0]?.error]).toEqual([
      'degraded',
      'no connection to a sentinel comes about, so a failover would be missed',
    ]);
    // Of a client of the application ioredis does not tell.
    if (way !== 'options') return;
    await sleep(300); // all three are refused
    expect(logs.lines).toEqual([
      expect.stringMatching(/^No connection to the failover messages of sentinel locks: .*NOPERM/),
    ]);
  });
});

describe('A password of the sentinels that changes', () => {
  afterEach(() => sentinelsAsk(undefined));

  const endOthers = async () => {
    for (const port of deployment.ports) {
      const sentinel = new Redis({ port, password: PASSWORD, protocol: 2 });
      sentinel.on('error', () => undefined);
      await sentinel.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
      sentinel.disconnect();
    }
  };

  it('is told once by a service that does not know it, and so is that it is let in again', async () => {
    const locks = environment.service({ connection: deployment.connection });
    await (await locks.acquire('key')).release();
    const events: LockEvent[] = [];
    locks.events$.subscribe((event) => events.push(event));
    await until(async () => (await locks.health()).status === 'up');
    await sentinelsAsk(PASSWORD);
    await endOthers();
    await until(() => events.length > 0);
    await until(async () => (await locks.health()).status === 'degraded');
    await sleep(500); // several rounds
    expect(logs.lines.filter((line) => line.startsWith('No connection'))).toEqual([
      expect.stringMatching(/^No connection to the failover messages of sentinel locks: .*NOAUTH/),
    ]);
    await sentinelsAsk(undefined);
    await endOthers();
    await until(async () => (await locks.health()).status === 'up');
    await until(() => events.length > 1);
    expect(events.map(({ type }) => type)).toEqual(['disconnected', 'reconnected']);
  });

  it('is that of the connection for messages, as soon as the client of the application has it', async () => {
    const client = clientOf(new Redis({ ...CAREFUL, ...deployment.connection } as object));
    const locks = environment.service({ connection: client });
    const holder = environment.service({ connection: (await deployment.master()).url });
    const lease = await holder.acquire('key');
    const waiting = locks.acquire('key');
    await until(async () => (await holder.inspect('key'))?.waiters.processes === 1);
    await sentinelsAsk(PASSWORD);
    client.options.sentinelPassword = PASSWORD;
    await endOthers();
    const [port = 0] = deployment.ports;
    const sentinel = environment.client(new Redis({ port, password: PASSWORD, protocol: 2 }));
    await until(async () =>
      String(await sentinel.call('CLIENT', 'LIST', 'TYPE', 'pubsub')).includes('sub=1'),
    );
    await lease.release();
    await (await waiting).release();
  });
});

it('A client of ioredis 5 ends its process if the sentinels refuse its password while it watches for a failover', async () => {
  const onSentinels = async (...command: [string, ...string[]]) => {
    const replies: unknown[] = [];
    for (const port of deployment.ports) {
      const sentinel = new Redis(port);
      replies.push(await sentinel.call(...command));
      sentinel.disconnect();
    }
    return replies;
  };
  await onSentinels('ACL', 'SETUSER', 'app', 'reset', 'on', '>first', '&*', '+@all');
  const options = { ...deployment.connection, failoverDetector: true, sentinelUsername: 'app' };
  const running = runProgram(
    `import { Redis } from 'ioredis-5';
     const client = new Redis({ ...${JSON.stringify(options)}, sentinelPassword: 'first', sentinelReconnectStrategy: () => 100 });
     client.on('error', () => undefined);
     const locks = new LockService({ connection: client });
     await locks.acquire('watched');`,
  );
  const ended = expect(running).rejects.toThrow(/WRONGPASS/);
  const watches = (list: unknown) => String(list).includes(' user=app ');
  await until(async () => (await onSentinels('CLIENT', 'LIST', 'TYPE', 'pubsub')).some(watches));
  await onSentinels('ACL', 'SETUSER', 'app', 'resetpass');
  await onSentinels('CLIENT', 'KILL', 'USER', 'app');
  await ended;
});

it('A process whose sentinels cannot be reached ends when it has shut down', async () => {
  const url = { sentinels: [{ host: '127.0.0.1', port: DEAD_PORT }], name: 'mymaster' };
  const worker = await Worker.start({ url });
  environment.add(() => worker.kill());
  await expect(worker.call('acquire', 'a', { waitTime: 500 })).rejects.toThrow();
  await worker.stop();
});
