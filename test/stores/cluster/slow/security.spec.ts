import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LockUnavailableError, type LockService, type RedisConnection } from '../../../../lib/index.js';
import { TestEnvironment } from '../../../support/test-environment.js';
import { until } from '../../../scenarios/until.js';
import { RedisCluster } from '../../../support/redis-cluster.js';

type ClusterConnection = Extract<RedisConnection, { cluster: unknown }>;

/** ms: longer than any call waits, so a caller that gets the lock was woken. */
const leaseTime = 300_000;

const environment = new TestEnvironment();
let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'lock-tls-'));
});

afterEach(async () => {
  await environment.end();
  rmSync(directory, { recursive: true });
});

async function start(args?: (port: number) => string[]): Promise<RedisCluster> {
  const cluster = await RedisCluster.start({ ...(args && { args }) });
  environment.add(() => cluster.stop());
  return cluster;
}

/** Commands and messages of both kinds, on all masters, need the password or the key. */
async function expectHandOvers(connection: ClusterConnection): Promise<void> {
  const [a, b] = [
    environment.service({ connection, leaseTime }),
    environment.service({ connection, leaseTime }),
  ];
  const kinds = [
    (locks: LockService, name: string) => locks.getLock(name),
    (locks: LockService, name: string) => locks.getFairLock(name),
  ];
  await Promise.all(
    ['a', 'b', 'c', 'd', 'e', 'f'].map(async (name, n) => {
      const lockIn = (locks: LockService) => kinds[n % 2]!(locks, name);
      const lease = await lockIn(a).acquire();
      const waiting = lockIn(b).acquire();
      await until(async () => {
        const state = await a.inspect(name);
        return state?.waiters.processes === 1 || state?.queue.length === 1;
      });
      await lease.release();
      await (await waiting).release();
    }),
  );
  expect(await a.health()).toMatchObject({ status: 'up' });
  // Before the cluster, which goes with the rest.
  await Promise.all([a, b].map((locks) => locks.onApplicationShutdown()));
}

const refused = async (connection: ClusterConnection): Promise<void> => {
  const locks = environment.service({ connection, leaseTime: 3_000 });
  await expect(locks.acquire('key', { waitTime: 500 })).rejects.toBeInstanceOf(LockUnavailableError);
  await locks.onApplicationShutdown();
};

describe('A cluster with TLS', () => {
  /** The plain port is for the test's own questions. */
  const tlsPort = (port: number) => port + 3_000;

  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: directory, stdio: 'pipe' });

  it('is used over it, and only where its certificate is trusted', async () => {
    const files = ['-keyout', 'key.pem', '-out', 'cert.pem'];
    const address = ['-subj', '/CN=lock', '-addext', 'subjectAltName=IP:127.0.0.1'];
    openssl('req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', ...files, ...address);
    const [key, cert] = ['key.pem', 'cert.pem'].map((file) => join(directory, file)) as [string, string];
    const cluster = await start((port) =>
      Object.entries({
        'tls-port': String(tlsPort(port)),
        'tls-cluster': 'yes',
        'tls-replication': 'yes',
        'tls-auth-clients': 'no',
        'tls-cert-file': cert,
        'tls-key-file': key,
        'tls-ca-cert-file': cert,
      }).flatMap(([name, value]) => [`--${name}`, value]),
    );
    const nodes = cluster.addresses.map(({ host, port }) => ({ host, port: tlsPort(port) }));
    const trusting = { redisOptions: { tls: { ca: readFileSync(cert) } } };
    await expectHandOvers({ cluster: nodes, options: trusting });
    await refused({ cluster: nodes, options: { redisOptions: { tls: {} } } });
    await refused({ cluster: nodes });
  });
});
