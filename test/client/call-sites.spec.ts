/** How many calls a service can name later, by the figure of the guide. */
import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { type LockEvent, LockService, MemoryLockStore } from '../../lib/index.js';
import { pass, until, useVirtualTime } from '../support/virtual-time.js';

const page = readFileSync(new URL('../../docs/guide/service.md', import.meta.url), 'utf8');
const rate = Number(/more than (\d+) locks a second captures only some/.exec(page)?.[1]);

it('names the places of all calls of a process that acquires as many locks a second as the guide says', async () => {
  useVirtualTime();
  const locks = new LockService({ store: new MemoryLockStore(), silencedWarnings: ['lease-outlived'] });
  const outlived: LockEvent[] = [];
  locks.events$.subscribe((event) => {
    if (event.type === 'outlived') outlived.push(event);
  });
  const place = expect.stringMatching(/call-sites\.spec\.ts:\d+:\d+$/) as unknown;
  for (let call = 1; call <= 100; call++) {
    const name = `order:${String(call)}`;
    let left: Promise<void> | undefined;
    await locks.using(name, { label: `outer ${name}` }, () => {
      left = locks.using(name, { label: `inner ${name}` }, async () => {
        await until(() => outlived.length === call);
        await pass(2_000 / rate);
      });
    });
    await left;
    expect(outlived.at(-1)).toMatchObject({ at: place, outerAt: place });
  }
  await locks.close();
});
