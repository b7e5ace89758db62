import { fileURLToPath } from 'node:url';
import { HttpStatus } from '@nestjs/common';
import { CommandCounter } from './demo/command-count.js';
import { Processes } from './demo/processes.js';
import { pauseHolders } from './demo/paused-holder.js';
import { findRedis } from './demo/redis.js';
import { oversold, report, type Round } from './demo/report.js';
import { rush } from './demo/rush.js';
import { Sale } from './tickets/sale.js';

const BUYERS = 300;
const SHOPS = 3;
const TIME_LIMIT = 120_000;
const EXPECTED: readonly number[] = [HttpStatus.CREATED, HttpStatus.GONE, HttpStatus.CONFLICT];
const { seats } = new Sale();

const { signal, stop } = stopSignal();
const processes = new Processes(signal);
const limit = setTimeout(stop, TIME_LIMIT, `The demo took longer than ${String(TIME_LIMIT / 1_000)} s`);
try {
  process.exitCode = (await demo()) ? 0 : 1;
} catch (error) {
  const reason: unknown = signal.aborted ? signal.reason : error;
  console.error(reason instanceof Error ? reason.message : reason);
  process.exitCode = 1;
} finally {
  clearTimeout(limit);
  await processes.stop();
}

/** Whether it was the lock that kept the shop from overselling, and the fence where a holder was paused. */
async function demo(): Promise<boolean> {
  const redisUrl = await findRedis(processes);
  const isLocked = await sellToAll(redisUrl);
  if (process.platform === 'win32') return isLocked; // a process cannot be stopped and continued there
  console.log('\nOne seat left, two instances, and SQLite as the database\n');
  const { text, oversold: byScene } = await pauseHolders(processes, redisUrl);
  console.log(text);
  return isLocked && byScene.join() === '1,0,0';
}

async function sellToAll(redisUrl: string): Promise<boolean> {
  const counter = await CommandCounter.connect(redisUrl);
  try {
    const shops = await Promise.all(Array.from({ length: SHOPS }, () => openShop(redisUrl)));
    console.log(`${String(BUYERS)} buyers at once, ${String(seats)} seats, ${String(SHOPS)} instances\n`);
    const without = await play('without the lock', 'buy-unlocked', shops, counter);
    const withLock = await play('with the lock', 'buy', shops, counter);
    console.log(report([without, withLock], seats));
    return oversold(without, seats) > 0 && oversold(withLock, seats) === 0;
  } finally {
    counter.close();
  }
}

/** Starts an instance of the application as `npm start` does. Returns its URL. */
async function openShop(redisUrl: string): Promise<string> {
  const main = fileURLToPath(new URL('main.js', import.meta.url));
  const env = { REDIS_URL: redisUrl, PORT: '0', PAYMENT_TIME: '5' };
  return await processes.start(process.execPath, [main], { ready: /http:\/\/\S+/, env });
}

async function play(
  mode: string,
  path: string,
  shops: readonly string[],
  counter: CommandCounter,
): Promise<Round> {
  // As many as will buy, so that no wait includes opening a connection.
  await rush(shops, 'reset', BUYERS, signal);
  const [answers, commands] = await counter.during(() => rush(shops, path, BUYERS, signal));
  const odd = answers.find(({ status }) => !EXPECTED.includes(status));
  if (odd) throw new Error(`A purchase ${mode} was answered ${String(odd.status)}`);
  return { mode, answers, commands };
}

/** Fires on Ctrl-C and its like, so that the demo ends what it started before it ends itself. */
function stopSignal(): { signal: AbortSignal; stop: (why: string) => void } {
  const controller = new AbortController();
  const stop = (why: string) => {
    controller.abort(new Error(why));
  };
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.once(name, () => {
      stop(`Stopped by ${name}`);
    });
  }
  return { signal: controller.signal, stop };
}
