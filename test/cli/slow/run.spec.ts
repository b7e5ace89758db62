import { beforeAll, describe, expect, it } from '@jest/globals';
import type { LockService } from '../../../lib/index.js';
import { lockKeys } from '../../support/keys.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { until } from '../../scenarios/until.js';
import { call, start } from '../command-line.js';
import { runCommands, type RunCommands, says } from '../run-commands.js';
import { serverOfAll } from '../../support/test-servers.js';

const environment = TestEnvironment.ofAll();
const server = serverOfAll();
let locks: LockService;
let runs: RunCommands['runs'];
let shell: RunCommands['shell'];

beforeAll(async () => {
  locks = environment.service({ connection: server.url });
  ({ runs, shell } = runCommands(server));
});

const free = async (name: string) => {
  expect(await locks.inspect(name)).toBeNull();
};

describe('run', () => {
  it('runs a command under the lock, with its token, and ends as the command does', async () => {
    const script = 'echo "$LOCK_NAME:$LOCK_TOKEN"; cat; echo wrong >&2; exit 3';
    const [plain, fair, killed, missing, forbidden] = await Promise.all([
      shell('plain', script).ended,
      shell('fair', script, '--fair').ended,
      shell('killed', 'kill -USR1 $$').ended,
      runs('missing', [], 'there-is-no-such-command').ended,
      runs('forbidden', [], '/etc/passwd').ended,
    ]);
    expect(plain).toMatchObject({
      code: 3,
      stdout: expect.stringMatching(/^plain:\d+\n$/),
      stderr: 'wrong\n',
    });
    expect(fair.stdout).toMatch(/^fair:\d+\n$/);
    expect([killed.code, missing.code, forbidden.code]).toEqual([128 + 10, 127, 126]);
    expect(missing.stderr).toBe('nestjs-distributed-lock: the command is not found\n');
    for (const name of ['plain', 'fair', 'killed', 'missing', 'forbidden']) await free(name);
  });

  it('waits for the lock for --wait, and is busy after that: 75', async () => {
    const script = `trap 'echo end; exit 0' USR1; echo begin; while :; do sleep 0.05; done`;
    const holder = shell('turns', script);
    await says(holder, 'begin');
    const next = shell('turns', 'echo next', '--wait', 'forever');
    const busy = await shell('turns', 'echo ran', '--wait', '0').ended;
    await until(async () => (await locks.inspect('turns'))?.queue.length === 1);
    expect(next.stdout()).toBe('');
    holder.child.kill('SIGUSR1');
    expect((await next.ended).stdout).toBe('next\n');
    expect(await holder.ended).toMatchObject({ code: 0, stdout: 'begin\nend\n' });
    expect([busy.code, busy.stdout]).toEqual([75, '']);
    expect(busy.stderr).toMatch(/^nestjs-distributed-lock: The lock "turns" is busy.*: held by .*\n$/);
  });

  it('says why it waits for Redis, once', async () => {
    const running = start(['run', 'name', '--url', 'redis://127.0.0.1:1', '--wait', '2m', '--', 'true']);
    let said = '';
    running.child.stderr?.on('data', (text: Buffer) => (said += text.toString()));
    await until(() => said.includes('\n'));
    expect(said).toMatch(/^nestjs-distributed-lock: Redis .*ECONNREFUSED.*: run goes on waiting\n$/);
    running.child.kill('SIGTERM');
    expect(await running.ended).toMatchObject({ code: 143, stderr: said });
  });

  it('leaves the queue at once when a signal comes while it waits', async () => {
    const lease = await locks.acquire('queue');
    const signals = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR1'] as const;
    const waiting = signals.map(() => shell('queue', 'echo ran', '--wait', 'forever'));
    await until(async () => (await locks.inspect('queue'))?.queue.length === signals.length);
    waiting.forEach(({ child }, n) => child.kill(signals[n]));
    const outcomes = await Promise.all(waiting.map(({ ended }) => ended));
    expect(outcomes.map(({ code, stdout, stderr }) => [code, stdout, stderr])).toEqual(
      [130, 143, 129, 138].map((code) => [code, '', '']),
    );
    expect((await locks.inspect('queue'))?.queue).toEqual([]);
    await lease.release();
    expect((await lockKeys(server.client())).filter((key) => key.includes(':queue'))).toEqual([]);
  });

  it('passes signals on to the command and what it has started', async () => {
    const script = `trap 'echo usr' USR1; trap 'echo term; exit 7' TERM; echo "pid $$"; while :; do sleep 0.05; done`;
    const running = shell('signals', script);
    await says(running, 'pid');
    running.child.kill('SIGUSR1');
    await says(running, 'usr');
    running.child.kill('SIGTERM');
    expect((await running.ended).code).toBe(7);
    await free('signals');
  });
});

describe('A wrong call of', () => {
  it.each([
    [['run', 'name', '--url', 'redis://a', 'true'], 'there are more arguments'],
    [['run', 'name', '--url', 'redis://a'], 'put the command to run after --'],
    [['run', '--url', 'redis://a', '--', 'true'], '<name> is missing'],
    [['run', '--', 'name', '--'], 'put the command to run after --'],
    [['run', '--', 'sh', '-c', '--', 'true'], '<name> is missing'],
    [['run', 'name', '--url', 'redis://a', '--lease', '1ms', '--', 'true'], '--lease: must be'],
    [['run', 'name', '--url', 'redis://a', '--json', '--', 'true'], '--json is not an option'],
    [['release', 'name', '--url', 'redis://a', '--force'], '--force needs --yes'],
    [['ls', '--url', 'redis://a', '--constructor'], '--constructor is not an option'],
  ])('%j', async (args, rule) => {
    const { code, stderr } = await call(args);
    expect([code, stderr]).toEqual([64, expect.stringContaining(rule)]);
  });
});
