import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { serverProgram } from '../../support/redis-server.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { call } from '../command-line.js';

const environment = new TestEnvironment();
const directory = mkdtempSync(join(tmpdir(), 'lock-tls-'));
const file = (name: string) => join(directory, name);

const hasOpenssl = spawnSync('openssl', ['version']).status === 0;
/** One that was built without TLS does not know these options. */
const hasTls = spawnSync(serverProgram() ?? 'false', ['--port', '0', '--tls-port', '1'])
  .output.join('')
  .includes('Failed to configure TLS');
const why = hasOpenssl && hasTls ? '' : ' (skipped: it needs openssl, and a server with TLS)';

/** `<name>.crt` and `<name>.key`, signed by the authority `ca`. */
function certificate(name: string): void {
  const openssl = (...args: string[]) =>
    execFileSync('openssl', args, { cwd: directory, stdio: ['ignore', 'ignore', 'pipe'] });
  const key = ['-newkey', 'rsa:2048', '-nodes', '-keyout', `${name}.key`, '-subj', `/CN=${name}`];
  if (name === 'ca') {
    openssl('req', '-x509', ...key, '-out', 'ca.crt', '-days', '1');
    return;
  }
  writeFileSync(file('names'), 'subjectAltName = IP:127.0.0.1');
  openssl('req', ...key, '-out', `${name}.csr`);
  const authority = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '1'];
  openssl('x509', '-req', '-in', `${name}.csr`, ...authority, '-extfile', 'names', '-out', `${name}.crt`);
}

afterAll(async () => {
  await environment.end();
  rmSync(directory, { recursive: true });
});

(why === '' ? describe : describe.skip)(`TLS${why}`, () => {
  let url = '';

  beforeAll(async () => {
    for (const name of ['ca', 'server', 'client']) certificate(name);
    const free = createServer().listen(0, '127.0.0.1');
    await once(free, 'listening');
    const { port } = free.address() as AddressInfo;
    free.close();
    await once(free, 'close');
    const files = { cert: 'server.crt', key: 'server.key', 'ca-cert': 'ca.crt' };
    const args = Object.entries(files).flatMap(([name, path]) => [`--tls-${name}-file`, file(path)]);
    const server = await environment.server({ args: ['--tls-port', String(port), ...args] });
    await environment.service({ connection: server.url }).acquire('name');
    url = `rediss://127.0.0.1:${String(port)}`;
  });

  const at = (...args: string[]) => call(['ls', '--json', '--timeout', '60s', '--url', url, ...args]);
  const own = () => ['--cert', file('client.crt'), '--key', file('client.key')];

  it('trusts the authority of --cacert, and shows the certificate of --cert', async () => {
    const outcome = await at('--cacert', file('ca.crt'), ...own());
    expect(outcome).toMatchObject({ code: 0, stdout: expect.stringContaining('"name"') });
  });

  it('says what is missing in one line', async () => {
    const [stranger, unknown] = await Promise.all([at(...own()), at('--cacert', file('ca.crt'))]);
    expect([stranger.code, unknown.code]).toEqual([69, 69]);
    expect(stranger.stderr).toMatch(/^nestjs-distributed-lock: Redis cannot be used: .*certificate.*\n$/);
    expect(unknown.stderr).toMatch(/^nestjs-distributed-lock: Redis cannot be used: .*\n$/);
  });
});

describe('A server that does not answer', () => {
  const OF_TLS = 'not connected to Redis (connecting: the server has not answered the TLS handshake)';

  it.each(['ls', 'doctor'])(
    'at a port without TLS, says %s, has not answered the handshake',
    async (command) => {
      const { port } = await environment.server();
      const { code, stderr } = await call([command, '--url', `rediss://127.0.0.1:${String(port)}`]);
      expect([code, stderr]).toEqual([69, expect.stringContaining(OF_TLS)]);
    },
  );

  it('at a port that takes connections has not answered yet', async () => {
    const server = await environment.server();
    server.freeze();
    const { code, stderr } = await call(['show', 'name', '--url', server.url]);
    server.thaw();
    const said =
      'Redis cannot be used: not connected to Redis (connect: the server has not answered yet, or loads its data)\n';
    expect([code, stderr]).toEqual([69, `nestjs-distributed-lock: ${said}`]);
  });
});

describe('The files of TLS', () => {
  it.each([
    [['--url', 'redis://a', '--cacert', '/dev/null'], '--url: --cacert, --cert and --key are for rediss://'],
    [['--url', 'rediss://a', '--cert', '/dev/null'], '--cert and --key belong together'],
    [['--url', 'rediss://a', '--cacert', '/no/secret'], '--cacert: the file cannot be read (ENOENT)'],
  ])('%j is a wrong call', async (args, rule) => {
    const { code, stderr } = await call(['ls', ...args]);
    expect([code, stderr]).toEqual([64, expect.stringContaining(rule)]);
    expect(stderr).not.toContain('secret');
  });
});
