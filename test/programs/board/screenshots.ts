// Makes the pictures of the board for the pages: npm run board:docs
import 'reflect-metadata';
import { Logger, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { LockModule, LockService } from 'nestjs-distributed-lock';
import { LockBoardModule } from 'nestjs-distributed-lock/board';
import { launchChromium, view } from '../../board/chromium.js';
import { RedisServer } from '../../support/redis-server.js';

const server = await RedisServer.start({ port: 6390 });
const connection = server.url;

@Module({
  imports: [LockModule.forRoot({ connection, label: 'api-1' }), LockBoardModule.forRoot()],
})
class AppModule {}

Logger.overrideLogger(false);
const app = await NestFactory.create(AppModule);
await app.listen(0, '127.0.0.1');
const fleet = ['api-2', 'api-3', 'worker-1', 'worker-2'].map(
  (label) => new LockService({ connection, label }),
);
const [api, , worker] = fleet;
const own = app.get(LockService);

/** Callers of all processes that come back after a while. What they are refused is a part of the picture. */
async function comeAndGo(
  locks: LockService,
  name: string,
  kind: 'lock' | 'fair' | 'read' | 'write',
  hold: number,
) {
  for (;;) {
    await locks
      .using(name, { kind, waitTime: '1m' }, () => sleep(hold, null, { ref: false }))
      .catch(() => undefined);
    await sleep(hold / 20, null, { ref: false });
  }
}

void own.acquire('report:daily');
// An export that hangs: the ones before it took a moment.
for (const day of [1, 2, 3, 4])
  await own.using(`export:2026-03-0${String(day)}`, { label: 'export:$<day>' }, () => sleep(80));
void worker?.acquire('export:2026-03-05');
void api?.acquire('export:2026-03-05', { waitTime: '5m' }).catch(() => undefined);
void own.getElection('scheduler').run(
  ({ signal }) =>
    new Promise((resolve) => {
      signal.addEventListener('abort', resolve);
    }),
);
await sleep(300);
void worker?.getElection('scheduler').run(() => undefined);
void worker?.acquire('import:customers/part-0007', { leaseTime: '90s', renew: false });
void api?.acquire('invoice:2026-000481', { leaseTime: '21s', renew: false });
for (const locks of fleet.slice(0, 3)) void locks.getSemaphore('mail-gateway', 4).acquire();
for (const locks of fleet) void comeAndGo(locks, 'order:10017', 'fair', 5_300);
for (const locks of [own, ...fleet]) void comeAndGo(locks, 'seat:14A', 'lock', 3_700);
for (const locks of fleet.slice(1)) void comeAndGo(locks, 'price-list', 'read', 7_000);
void comeAndGo(own, 'price-list', 'write', 4_000);

const browser = await launchChromium();
const url = `${await app.getUrl()}/locks`;
const folder = fileURLToPath(new URL('../../../docs/', import.meta.url));
const pictures = [
  { file: 'board-light.png', theme: 'light', width: 1280, height: 760 },
  { file: 'board-dark.png', theme: 'dark', width: 1280, height: 760 },
  { file: 'board-narrow.png', theme: 'light', width: 360, height: 760 },
] as const;
await Promise.all(
  pictures.map(async ({ file, ...options }) => {
    const { page } = await view(browser, { url, ...options });
    await page.locator('#live.is-live').waitFor();
    await sleep(12_000);
    if (options.width > 1_000)
      await page.locator('.lock', { hasText: 'order:10017' }).locator('.name a').click();
    await sleep(2_000);
    await page.evaluate('document.activeElement?.blur()');
    await page.screenshot({ path: folder + file });
    process.stdout.write(`${file}\n`);
  }),
);
await browser.close();
await app.close();
await Promise.all(fleet.map((locks) => locks.close()));
await server.stop();
process.exit();
