import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** A database server of its own, which ends with the spec. */
export interface DatabaseServer {
  readonly port: number;
  stop(): Promise<void>;
}

const POSTGRES = '/usr/lib/postgresql';
const versions = existsSync(POSTGRES) ? readdirSync(POSTGRES) : [];
const bin = join(POSTGRES, versions.at(-1) ?? '', 'bin');
const MARIADB = '/usr/sbin/mariadbd';

/** For the title of a spec that is left out. */
export const missing = {
  postgres: versions.length === 0 ? 'no PostgreSQL in /usr/lib/postgresql on this machine' : undefined,
  mariadb: existsSync(MARIADB) ? undefined : 'no MariaDB on this machine',
};

export async function startPostgres(): Promise<DatabaseServer> {
  const directory = mkdtempSync(join(tmpdir(), 'lock-postgres-'));
  const owner = ownerOf('postgres');
  if (owner !== undefined) chownSync(directory, owner.uid, owner.gid);
  const as = { ...owner, cwd: directory };
  const data = join(directory, 'data');
  const made = spawnSync(join(bin, 'initdb'), ['-D', data, '-U', 'postgres', '-A', 'trust', '--no-sync'], {
    ...as,
    encoding: 'utf8',
  });
  if (made.status !== 0) throw new Error(`initdb: ${made.stderr}`);
  const port = await freePort();
  const args = ['-D', data, '-p', String(port), '-k', directory, '-h', '127.0.0.1', '-c', 'fsync=off'];
  return await running(
    spawn(join(bin, 'postgres'), args, { ...as, stdio: 'ignore' }),
    port,
    directory,
    'SIGINT',
    // It takes connections before it can serve them.
    () => spawnSync(join(bin, 'pg_isready'), ['-h', '127.0.0.1', '-p', String(port)]).status === 0,
  );
}

export async function startMariaDb(): Promise<DatabaseServer> {
  const directory = mkdtempSync(join(tmpdir(), 'lock-mariadb-'));
  const data = join(directory, 'data');
  const user = `--user=${process.getuid?.() === 0 ? 'root' : (process.env.USER ?? '')}`;
  const made = spawnSync(
    'mariadb-install-db',
    [
      '--no-defaults',
      `--datadir=${data}`,
      user,
      '--auth-root-authentication-method=normal',
      '--skip-test-db',
    ],
    { encoding: 'utf8' },
  );
  if (made.status !== 0) throw new Error(`mariadb-install-db: ${made.stderr}`);
  const port = await freePort();
  const args = ['--no-defaults', user, `--datadir=${data}`, `--port=${String(port)}`];
  const local = ['--bind-address=127.0.0.1', `--socket=${join(directory, 'socket')}`, '--skip-name-resolve'];
  return await running(spawn(MARIADB, [...args, ...local], { stdio: 'ignore' }), port, directory, 'SIGTERM');
}

async function running(
  child: ChildProcess,
  port: number,
  directory: string,
  signal: NodeJS.Signals,
  isReady: () => boolean | Promise<boolean> = () => answers(port),
): Promise<DatabaseServer> {
  const ended = once(child, 'exit');
  const stop = async () => {
    child.kill(signal);
    await ended;
    await rm(directory, { recursive: true });
  };
  while (!(await isReady())) {
    if (child.exitCode !== null) throw new Error(`the database server ended with ${String(child.exitCode)}`);
    await sleep(20);
  }
  return { port, stop };
}

/** PostgreSQL does not run as root. */
function ownerOf(name: string): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const id = (flag: string) => Number(spawnSync('id', [flag, name], { encoding: 'utf8' }).stdout);
  return { uid: id('-u'), gid: id('-g') };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return typeof address === 'object' && address !== null ? address.port : NaN;
}

const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const end = (answer: boolean) => () => {
      socket.destroy();
      resolve(answer);
    };
    socket.once('connect', end(true)).once('error', end(false));
  });
