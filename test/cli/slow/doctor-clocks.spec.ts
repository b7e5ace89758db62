import { afterAll, describe, expect, it } from '@jest/globals';
import { fileURLToPath } from 'node:url';
import { PreloadedClock } from '../../support/preloaded-clock.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { call } from '../command-line.js';

const environment = new TestEnvironment();
const source = fileURLToPath(new URL('../../programs/chaos/faults/wall-clock.c', import.meta.url));
const clock = PreloadedClock.make(source, 'WALL_CLOCK_OFFSET');
const skipped = clock === undefined ? ' (skipped: its clock needs Linux and a C compiler)' : '';

afterAll(async () => {
  await environment.end();
  clock?.remove();
});

(skipped === '' ? describe : describe.skip)(`doctor, and a node whose clock is ahead${skipped}`, () => {
  it('names the node, and says how far the clocks are apart', async () => {
    const [ahead, ...others] = await Promise.all([
      environment.server({ env: clock!.env }),
      environment.server(),
      environment.server(),
    ]);
    clock!.set(5);
    const nodes = [ahead, ...others].map(({ url }) => url);
    const { code, stdout } = await call(['doctor', '--json', '--timeout', '60s', '--nodes', nodes.join()]);
    const { findings } = JSON.parse(stdout) as {
      findings: { level: string; code: string; message: string }[];
    };
    expect(code).toBeGreaterThan(0);
    expect(findings.filter((finding) => finding.code.startsWith('clock'))).toEqual([
      {
        level: 'warning',
        code: 'clock',
        node: `127.0.0.1:${String(ahead.port)}`,
        message: expect.stringMatching(/^its clock is [45]\.\ds ahead of this machine's$/),
        cure: expect.stringContaining('NTP'),
      },
      ...others.map(({ port }) =>
        expect.objectContaining({ level: 'ok', code: 'clock', node: `127.0.0.1:${String(port)}` }),
      ),
      expect.objectContaining({
        level: 'warning',
        code: 'clocks',
        message: expect.stringMatching(/^the clocks of the nodes are [45]\.\ds apart$/),
        cure: expect.stringContaining('fencing tokens'),
      }),
    ]);
  });
});
