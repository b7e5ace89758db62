import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { LockBoardModule } from '../../../../dist/board/index.js';
import { LockModule, LockService } from '../../../../dist/index.js';

/** ms */
const LEASE = 3_000;
/** How often the event loop is asked, ms. */
const STEP = 2;

/** An application that holds leases, and keeps the pages of many viewers up to date in the same event loop. */
export async function play({ client, params: { url: connection, viewers, seconds } }) {
  class AppModule {}
  Module({
    imports: [
      LockModule.forRoot({ connection, leaseTime: LEASE }),
      LockBoardModule.forRoot({ maxViewers: viewers }),
    ],
  })(AppModule);
  const app = await NestFactory.create(AppModule, { logger: false });
  await app.listen(0, '127.0.0.1');
  const locks = app.get(LockService);
  let lost = 0;
  locks.events$.subscribe(({ type }) => {
    if (type === 'lost') lost++;
  });
  const leases = await Promise.all(['own:a', 'own:b', 'own:c'].map((name) => locks.acquire(name)));

  let longest = 0;
  let last = performance.now();
  const probe = setInterval(() => {
    const now = performance.now();
    longest = Math.max(longest, now - last - STEP);
    last = now;
  }, STEP);
  const crowd = fork(new URL('viewers.mjs', import.meta.url), [
    new URL(await app.getUrl()).port,
    '/locks/events',
    String(viewers),
  ]);
  const [answers] = await once(crowd, 'message');
  // All at once they come in one turn of the loop, as 1,000 requests of any application do.
  const arrival = longest;
  longest = 0;
  // Locks of another service come and go meanwhile.
  const end = performance.now() + seconds * 1_000;
  for (let n = 0; performance.now() < end; n++) {
    await client.service.using(`order:${n % 100}`, () => sleep(50));
  }
  clearInterval(probe);
  const held = leases.filter((lease) => lease.held).length;
  crowd.kill();
  await Promise.all(leases.map((lease) => lease.release()));
  await app.close();
  return { arrival, longest, kept: held - lost, served: answers['200'] ?? 0 };
}
