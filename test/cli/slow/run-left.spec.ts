import { beforeAll, describe, expect, it } from '@jest/globals';
import type { LockService } from '../../../lib/index.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { PROGRAM } from '../command-line.js';
import { isKnown, isRunning, pidIn, runCommands, type RunCommands, says } from '../run-commands.js';
import { serverOfAll } from '../../support/test-servers.js';

const environment = TestEnvironment.ofAll();
const server = serverOfAll();
let locks: LockService;
let shell: RunCommands['shell'];

beforeAll(async () => {
  locks = environment.service({ connection: server.url });
  ({ shell } = runCommands(server));
});

const takeAway = async (name: string) => {
  await isKnown(locks, name);
  expect(await locks.forceRelease(name)).toBe(true);
};

const LOOP = 'while :; do sleep 0.05; done';
/** Each starts a process that tells its number and runs on. */
const LEAVING: Record<string, string> = {
  'a session of its own': `setsid sh -c 'echo "left $$"; ${LOOP}' &`,
  'a session of its own, without a parent': `(setsid sh -c 'echo "left $$"; ${LOOP}' &);`,
  'a group of its own': `bash -c "set -m; sh -c 'echo left \\$\\$; ${LOOP}' & wait" &`,
};

const onLinux = process.platform === 'linux' ? describe : describe.skip;
onLinux('What has left the group of a command of run', () => {
  it.each(Object.entries(LEAVING))('into %s ends with the lease', async (title, start) => {
    const running = shell(title, `${start} trap 'exit 3' TERM; ${LOOP}`);
    await says(running, 'left');
    await takeAway(title);
    const { code, stdout } = await running.ended;
    const left = pidIn(stdout, 'left');
    expect([code, isRunning(left)]).toEqual([3, false]);
  });

  it('and ignores SIGTERM, gets SIGKILL when the lease ends', async () => {
    const running = shell(
      'stubborn',
      `setsid sh -c 'trap "echo term" TERM; echo "left $$"; ${LOOP}' & trap 'exit 3' TERM; ${LOOP}`,
      '--lease',
      '9s',
    );
    await says(running, 'left');
    await takeAway('stubborn');
    const { code, stdout } = await running.ended;
    expect([code, stdout.match(/term/g)?.length, isRunning(pidIn(stdout, 'left'))]).toEqual([3, 1, false]);
  });
});

describe('A run inside of a run', () => {
  /** For a script of `sh`; what it runs is a script, too. */
  const inner = (name: string, script: string, before = '') =>
    `${before} '${process.execPath}' '${PROGRAM}' run ${name} --url ${server.url} --wait 0 -- sh -c '${script}'`;

  it('of the same lock is refused at once, and one without the mark is busy', async () => {
    const { code, stdout, stderr } = await shell('same', inner('same', 'echo ran')).ended;
    expect([code, stdout]).toEqual([64, '']);
    expect(stderr).toMatch(
      /^nestjs-distributed-lock: a run around this one holds "same", and waits for this one: .*LOCK_RUNS\n$/,
    );
    expect((await shell('same', inner('same', 'echo ran', 'env -u LOCK_RUNS')).ended).code).toBe(75);
  });

  it('takes another lock, and knows all that it is inside of', async () => {
    const innermost = inner('outer', 'echo ran').replaceAll("'", `'"'"'`);
    const { stdout, stderr } = await shell(
      'outer',
      inner('inner', `echo "$LOCK_RUNS"; ${innermost}; echo "code $?"`),
    ).ended;
    expect(stdout).toMatch(/^\S+:\d+,\S+:\d+\ncode 64\n$/);
    expect(stderr).toContain('holds "outer"');
    expect([await locks.inspect('outer'), await locks.inspect('inner')]).toEqual([null, null]);
  });

  it('ends with the outer lease, and its command gets SIGTERM once', async () => {
    const script = `trap "echo term" TERM; echo "pid $$"; ${LOOP}`;
    const running = shell(
      'around',
      `trap 'exit 3' TERM; ${inner('within', script)} & ${LOOP}`,
      '--lease',
      '9s',
    );
    await says(running, 'pid');
    await takeAway('around');
    const { code, stdout } = await running.ended;
    expect([code, stdout.match(/term/g)?.length, isRunning(pidIn(stdout))]).toEqual([3, 1, false]);
  });
});
