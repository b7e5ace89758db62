import { beforeAll, describe, expect, it } from '@jest/globals';
import type { LockService } from '../../../lib/index.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { until } from '../../scenarios/until.js';
import { call } from '../command-line.js';
import {
  isKnown,
  isReached,
  isRunning,
  pidIn,
  runCommands,
  type RunCommands,
  says,
} from '../run-commands.js';
import { serverOfAll } from '../../support/test-servers.js';

const environment = TestEnvironment.ofAll();
const server = serverOfAll();
let locks: LockService;
let shell: RunCommands['shell'];

beforeAll(async () => {
  locks = environment.service({ connection: server.url });
  ({ shell } = runCommands(server));
});

describe('run, and a lock that is lost or asked for', () => {
  const scenarios = new Map<string, Promise<void>>();
  /** All of them wait most of the time, so they run side by side. */
  const scenario = (title: string, run: () => Promise<void>) => {
    beginnings.push(() => scenarios.set(title, run()));
    it(title, () => scenarios.get(title));
  };
  const beginnings: (() => void)[] = [];
  beforeAll(() => {
    for (const begin of beginnings) begin();
    for (const running of scenarios.values()) running.catch(() => undefined);
  });

  /** Ignores SIGTERM, as what it starts does. */
  const STUBBORN = `trap 'echo term' TERM; (trap '' TERM; while :; do echo beat; sleep 0.05; done) & echo "pid $!"; while :; do sleep 0.05; done`;

  scenario(
    'that cannot be renewed: SIGTERM, and SIGKILL for all processes, before the store answers again',
    async () => {
      const frozen = await environment.server();
      const running = runCommands(frozen).shell('name', STUBBORN, '--lease', '6s');
      await says(running, 'beat');
      const grandchild = pidIn(running.stdout());
      frozen.freeze();
      const { code, stdout, stderr } = await running.ended;
      frozen.thaw();
      expect([code, stdout, isRunning(grandchild)]).toEqual([137, expect.stringContaining('term'), false]);
      expect(stderr).toMatch(
        /^nestjs-distributed-lock: the lease cannot be renewed \(.*\): the command has to end$/m,
      );
    },
  );

  scenario('that is taken away: SIGTERM at once, and no success', async () => {
    const polite = shell(
      'taken',
      `trap 'echo term; exit 0' TERM; echo "pid $$"; while :; do sleep 0.05; done`,
    );
    const stubborn = shell('taken:too', STUBBORN, '--lease', '9s');
    await Promise.all([says(polite, 'pid'), says(stubborn, 'beat')]);
    await Promise.all([isKnown(locks, 'taken'), isKnown(locks, 'taken:too')]);
    const args = ['--url', server.url, '--timeout', '60s', '--force', '--yes', '--reason', 'repair'];
    const [first, second] = await Promise.all([
      call(['release', 'taken', ...args]),
      call(['release', 'taken:too', ...args, '--json']),
    ]);
    expect([first.code, first.stdout, second.stdout]).toEqual([
      0,
      'Released "taken"\n',
      '{"released":true}\n',
    ]);
    const [ended, killed] = await Promise.all([polite.ended, stubborn.ended]);
    expect([ended.code, killed.code]).toEqual([143, 137]);
    expect(ended.stderr).toMatch(
      /^nestjs-distributed-lock: The lease on "taken" is lost: .*: the command has to end\n/m,
    );
    expect(isRunning(pidIn(killed.stdout))).toBe(false);
  });

  scenario('that is asked for: SIGTERM once, and the command decides', async () => {
    const running = shell(
      'asked',
      `trap 'echo term; asked=1' TERM; echo "pid $$"; while [ -z "$asked" ]; do sleep 0.1; done; n=0; while [ $n -lt 10 ]; do sleep 0.1; n=$((n+1)); done; exit 5`,
    );
    await says(running, 'pid');
    await isReached(locks, 'asked', server);
    const asked = await call([
      'release',
      'asked',
      '--url',
      server.url,
      '--timeout',
      '60s',
      '--reason',
      'deploy',
    ]);
    expect([asked.code, asked.stdout]).toEqual([0, 'Asked the holder of "asked"\n']);
    const { code, stdout, stderr } = await running.ended;
    expect([code, stdout.match(/term/g)]).toEqual([5, ['term']]);
    expect(stderr).toMatch(
      /^nestjs-distributed-lock: Asked to release the lock "asked" by ".+": "deploy": the command gets SIGTERM\n/m,
    );
    expect(stderr.match(/gets SIGTERM/g)).toHaveLength(1);
    const none = await call(['release', 'asked', '--url', server.url, '--timeout', '60s', '--json']);
    expect([none.code, none.stdout]).toEqual([1, '{"asked":0}\n']);
  });

  scenario('of a program that is killed ends by its lease, and the command goes on', async () => {
    const running = shell('crash', 'echo "pid $$"; exec sleep 300', '--lease', '3s');
    await says(running, 'pid');
    running.child.kill('SIGKILL');
    await until(async () => (await locks.inspect('crash')) === null);
    expect(isRunning(pidIn(running.stdout()))).toBe(true);
    process.kill(-pidIn(running.stdout()), 'SIGKILL');
    await running.ended;
  });
});
