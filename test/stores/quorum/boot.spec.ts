import { afterEach, describe, expect, it } from '@jest/globals';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  LockModule,
  type LockModuleOptions,
  LockService,
  isLockUnavailableError,
} from '../../../lib/index.js';
import { createLeastUser } from '../../support/acl.js';
import { until } from '../../scenarios/until.js';
import { call } from '../../cli/command-line.js';
import { QuorumEnvironment } from './quorum-environment.js';

/** ms: a node has ten seconds to answer then. */
const LEASE = 200_000;

describe('The boot of an application', () => {
  const environment = QuorumEnvironment.forEach(4);

  const appWith = async (nodes: LockModuleOptions['nodes']): Promise<TestingModule> => {
    const module = await Test.createTestingModule({
      imports: [LockModule.forRoot({ nodes, leaseTime: LEASE })],
    }).compile();
    environment.add(() => module.close());
    return module;
  };
  const nodes = (...indexes: number[]) => indexes.map((index) => environment.node(index).url);

  it('fails if its nodes are not those of the quorum, and leaves no connection', async () => {
    await environment.settled(environment.quorum({ leaseTime: LEASE }, nodes(0, 1, 2)));
    const app = await appWith(nodes(0, 1, 3));
    await expect(app.init()).rejects.toMatchObject({ code: 'LOCK_CONFIG', option: 'nodes' });
    const clients = async () =>
      String(await environment.node(3).client().client('LIST'))
        .trim()
        .split('\n');
    await until(async () => (await clients()).length === 1);
  });

  it('succeeds on the nodes of the quorum', async () => {
    await environment.settled(environment.quorum({ leaseTime: LEASE }, nodes(0, 1, 2)));
    const app = await appWith(nodes(0, 1, 2));
    await app.init();
    expect((await app.get(LockService).acquire('a')).held).toBe(true);
  });

  it('succeeds while no node can be reached, and while some are frozen', async () => {
    environment.node(0).freeze();
    environment.node(1).freeze();
    await (await appWith(nodes(0, 1, 2))).init();
    environment.node(0).thaw();
    environment.node(1).thaw();
    await Promise.all(environment.nodes.map((node) => node.kill()));
    await (await appWith(nodes(0, 1, 2))).init();
  });
});

describe('A user without a right to the charter of the nodes', () => {
  let environment: QuorumEnvironment;
  afterEach(() => environment.end());

  it('is told the right that is missing, in a warning, in health and in the error, which comes at once', async () => {
    environment = await QuorumEnvironment.of(3);
    const users = await Promise.all(environment.nodes.map((node) => createLeastUser(node.client())));
    const locks = environment.quorum(
      { leaseTime: LEASE },
      environment.nodes.map(({ port }, index) => ({ host: '127.0.0.1', port, ...users[index] })),
    );
    const warnings: string[] = [];
    locks.events$.subscribe((event) => {
      if (event.type === 'warning' && event.code === 'charter-right') warnings.push(event.message);
    });
    const error: unknown = await locks.acquire('a', { waitTime: 60_000 }).catch((reason: unknown) => reason);
    if (!isLockUnavailableError(error)) throw error;
    expect(error.permanent).toBe(true);
    const right = 'ACL SETUSER <user> ~~ndl:quorum';
    // Two refusals are an answer, and the third node is not waited for.
    const refusals = error.outcomes.filter(({ error: cause }) =>
      String((cause as Error).cause).includes(right),
    );
    expect(refusals.length).toBeGreaterThanOrEqual(2);
    const { status, nodes } = await locks.health();
    expect(status).toBe('down');
    expect(nodes.map((node) => node.error)).toEqual(
      environment.nodes.map(() => expect.stringContaining(right) as unknown),
    );
    await until(() => warnings.length >= 3);
    expect(warnings).toEqual(environment.nodes.map(() => expect.stringContaining(right) as unknown));
    // The right is enough.
    await Promise.all(environment.nodes.map((node) => node.client().acl('SETUSER', 'locks', '~~ndl:quorum')));
    await environment.settled(locks);
    expect((await locks.acquire('a')).held).toBe(true);
  });
});

describe('The command doctor', () => {
  let environment: QuorumEnvironment;
  afterEach(() => environment.end());

  it('shows the charter: the longest lease that may be given, and for how long a restarted node does not vote', async () => {
    environment = await QuorumEnvironment.of(3);
    await environment.settled(environment.quorum({ leaseTime: 120_000 }));
    const id = String(await environment.node(0).client().hget('~ndl:quorum', 'id')).slice(0, 8);
    const { stdout } = await call(['doctor', '--json', '--nodes', environment.urls.join()]);
    const { findings } = JSON.parse(stdout) as {
      findings: { level: string; code: string; message: string }[];
    };
    const [charter, ...others] = findings.filter(({ code }) => code === 'charter');
    expect(others).toEqual([]);
    expect(charter).toMatchObject({ level: 'ok' });
    expect(charter?.message).toBe(
      `charter ${id}: leases of up to 2m may be given, and a node that has restarted does not vote for 2m`,
    );
  });
});
