import { expect, it } from '@jest/globals';
import { Writable } from 'node:stream';
import { cli } from '../../../lib/cli/cli.js';
import { Screen } from '../../../lib/cli/output/screen.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { until } from '../../scenarios/until.js';

const environment = TestEnvironment.ofAll();

it('watch draws again at once when the terminal has another size', async () => {
  const { url } = await environment.server();
  await environment.service({ connection: url }).acquire(`order:${'x'.repeat(60)}`);
  const pages: string[] = [];
  const out = Object.assign(
    new Writable({
      write: (chunk: Buffer, _, done) => {
        if (chunk.toString().startsWith('\u001b[H')) pages.push(chunk.toString());
        done();
      },
    }),
    { isTTY: true, columns: 120, rows: 24 },
  );
  const ended = cli(['watch', '--url', url, '--interval', '1h'], new Screen({ NO_COLOR: '1' }, out as never));
  await until(() => pages.length === 1);
  out.columns = 50;
  out.emit('resize');
  expect(pages).toHaveLength(2);
  expect([pages[0], pages[1]].map((page) => page?.includes('x'.repeat(60)))).toEqual([true, false]);
  process.emit('SIGINT', 'SIGINT');
  expect(await ended).toBe(0);
  expect(out.listenerCount('resize')).toBe(0);
});
