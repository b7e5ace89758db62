import { beforeAll, describe, expect, it } from '@jest/globals';
import { execFile, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { LockService } from '../../../lib/index.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { until } from '../../scenarios/until.js';
import { call, PROGRAM, start } from '../command-line.js';
import { isKnown } from '../run-commands.js';
import { serverOfAll } from '../../support/test-servers.js';

const PTY = fileURLToPath(new URL('../on_terminal.py', import.meta.url));
const hasPython = spawnSync('python3', ['-c', 'import pty']).status === 0;
const environment = TestEnvironment.ofAll();
const server = serverOfAll();
let locks: LockService;

beforeAll(async () => {
  locks = environment.service({ connection: server.url });
  await locks.acquire(`order:${'7'.repeat(90)}`);
});

/** Waits for a text on a terminal of its own, then presses keys. */
const onTerminal = (keys: string, text: string, args: string[], env: Record<string, string> = {}) =>
  new Promise<{ code: number; output: string }>((resolve) => {
    const inherited = { ...process.env, NODE_OPTIONS: undefined, NO_COLOR: undefined, TERM: 'xterm' };
    const options = { env: { ...inherited, REDIS_URL: server.url, ...env }, timeout: 120_000 };
    execFile('python3', [PTY, keys, text, process.execPath, PROGRAM, ...args], options, (error, output) => {
      resolve({ code: error === null ? 0 : Number(error.code), output });
    });
  });

describe('Output', () => {
  it('fits the terminal, and has colour there only, and not with NO_COLOR', async () => {
    const env = { REDIS_URL: server.url };
    const [narrow, plain, piped] = [
      await call(['ls', '--timeout', '60s'], env, 80),
      await call(['ls', '--timeout', '60s'], { ...env, NO_COLOR: '1' }, 80),
      await call(['ls', '--timeout', '60s'], env),
    ];
    for (const { stdout } of [narrow, plain])
      for (const line of stdout.replace(/\u001b\[\d+m/g, '').split('\n'))
        expect(line.length).toBeLessThan(81);
    expect(narrow.stdout).toContain('\u001b[1m');
    expect(narrow.stdout).toContain('7…');
    expect(plain.stdout + piped.stdout).not.toContain('\u001b');
    expect(piped.stdout).toContain('7'.repeat(90));
  });

  it('of watch is a line of JSON for each look, also over an outage', async () => {
    const own = await environment.server();
    await environment.service({ connection: own.url }).acquire('name');
    const running = start(['watch', '--json', '--interval', '100ms', '--timeout', '1s', '--url', own.url]);
    const lines = () =>
      running
        .stdout()
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as { locks?: object[]; error?: string });
    await until(() => lines().some(({ locks: found = [] }) => found.length === 1));
    own.freeze();
    await until(() => lines().at(-1)?.error !== undefined);
    own.thaw();
    await until(() => lines().at(-1)?.locks?.length === 1);
    running.child.kill('SIGTERM');
    const { code } = await running.ended;
    expect([code, lines().find(({ locks: found = [] }) => found.length === 1)]).toEqual([
      143,
      {
        at: expect.stringMatching(/^\d{4}-/),
        locks: [expect.objectContaining({ name: 'name' })],
        more: false,
      },
    ]);
    expect(await call(['watch'], { REDIS_URL: own.url })).toMatchObject({ code: 64 });
  });

  it.each([
    ['SIGHUP', 129],
    ['SIGQUIT', 131],
  ] as const)(
    'of watch ends in order after %s, which would leave a terminal without a cursor',
    async (signal, code) => {
      const running = start(['watch', '--json', '--url', server.url]);
      await until(() => running.stdout().includes('\n'));
      running.child.kill(signal);
      expect((await running.ended).code).toBe(code);
    },
  );
});

const why = hasPython ? '' : ' (skipped: it needs python3)';
(hasPython ? describe : describe.skip)(`On a terminal${why}`, () => {
  it('watch draws in place, ends with q and Ctrl-C, and leaves the terminal as it was', async () => {
    const ends = await Promise.all(
      ['q', '\\x03', '\\x03\\x03', 'xq'].map((keys) => onTerminal(keys, 'order:7', ['watch'])),
    );
    for (const { code, output } of ends) {
      expect(code).toBe(0);
      expect(output).toMatch(/^\u001b\[\?1049h\u001b\[\?25l\u001b\[H[^]*\u001b\[\?25h\u001b\[\?1049l$/);
    }
  });

  it('release --force asks before', async () => {
    await locks.acquire('mine');
    const args = ['release', 'mine', '--force'];
    const answers = await Promise.all(
      ['n\\n', '\\x03', '\\x04'].map((keys) => onTerminal(keys, '[y/N]', args)),
    );
    for (const { code, output } of answers)
      expect([code, output]).toEqual([1, expect.stringMatching(/\n.*Nothing is done\r\n$/)]);
    expect(await locks.inspect('mine')).not.toBeNull();
    expect((await onTerminal('y\\n', '[y/N]', args)).code).toBe(0);
    expect(await locks.inspect('mine')).toBeNull();
  });

  it('Ctrl-C reaches the command of run once, and what it has started ends with a lost lock', async () => {
    const told = join(tmpdir(), `lock-told-${String(process.pid)}`);
    environment.add(() => rm(told, { force: true }));
    const script = `trap 'echo int; : > ${told}' INT; trap 'echo quit; exit 9' QUIT; echo ready; while :; do sleep 0.05; done`;
    const interrupted = onTerminal('\\x03', 'ready', ['run', 'job', '--', 'sh', '-c', script]);
    await until(() => existsSync(told));
    await isKnown(locks, 'job');
    expect(await locks.forceRelease('job')).toBe(true);
    const { code, output } = await interrupted;
    expect(code).toBe(143);
    expect(output.match(/int\r\n/g)).toHaveLength(1);
  });
});
