import 'reflect-metadata';
import { afterAll, describe, expect, it, jest } from '@jest/globals';
import type { INestApplication } from '@nestjs/common';
import type { Page } from 'playwright-core';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { LockService } from '../../../lib/index.js';
import { deferred } from '../../doubles/deferred.js';
import { startBoard, type BoardAppOptions } from '../../nest/board/board-app.js';
import { until } from '../../scenarios/until.js';
import type { RedisServer } from '../../support/redis-server.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { chromiumProgram, launchChromium, view, type ViewOptions } from '../chromium.js';

const hasChromium = chromiumProgram() !== undefined;
const environment = new TestEnvironment();
const apps: INestApplication[] = [];
// Tests that run side by side begin before any hook.
const browser = hasChromium ? launchChromium() : undefined;
const shared = hasChromium ? environment.server() : undefined;
let spaces = 0;

afterAll(async () => {
  await (await browser)?.close();
  await Promise.all(apps.map((app) => app.close()));
  await environment.end();
});

/** An application with a board, and locks of its own. */
async function start(
  board: BoardAppOptions['board'] = {},
  own?: RedisServer,
  prepare: BoardAppOptions['prepare'] = () => undefined,
) {
  const server = own ?? (await shared!);
  const space = { connection: server.url, keyPrefix: `space${String(++spaces)}:`, waitTime: '5m' } as const;
  const { app, url } = await startBoard({ locks: { ...space, label: 'api-1' }, board, prepare });
  apps.push(app);
  const another = (label: string) => environment.service({ ...space, label, deadlock: 'report' });
  return { app, url: `${url}/locks`, locks: app.get(LockService), other: another('worker-1'), another };
}

const open = async (options: ViewOptions) => view(await browser!, options);
const live = (page: Page) => page.locator('#live.is-live').waitFor();
const row = (page: Page, name: string) => page.getByRole('row').filter({ hasText: name });
const attention = (page: Page) =>
  page.getByRole('region', { name: /^(Needs attention|Nothing unusual|Not known)/ });
const openLock = (page: Page, name: string) => row(page, name).locator('.name a').click();
const text = (page: Page, selector: string) => page.locator(selector).innerText();
/** What the dialog wants before it acts. */
async function fillIn(page: Page, name: string): Promise<void> {
  await page.getByLabel('Type the name of the lock').fill(name);
  await page.getByLabel('Reason').fill('it hangs');
}
const LETS_IN = { canActivate: () => true };

/** A busy machine has many browsers to run. */
jest.setTimeout(600_000);

const title = hasChromium ? 'the board in Chromium' : 'the board in Chromium (skipped: there is no chromium)';
(hasChromium ? describe : describe.skip)(title, () => {
  it.concurrent(
    'shows a lock that comes, ages, is waited for and taken away, and its holder is told',
    async () => {
      const { url, locks, other } = await start({ readOnly: false, guards: [LETS_IN] });
      const { page, problems } = await open({ url });
      await live(page);
      expect(await text(page, '#foot')).toBe('No lock is held or waited for.');

      const lease = await other.acquire('order:7');
      await row(page, 'order:7').waitFor();
      await page.locator('.holder a', { hasText: 'worker-1' }).waitFor();
      const age = () => text(page, '.lock .age time');
      const first = await age();
      await until(async () => (await age()) !== first);
      const waiting = locks.acquire('order:7');
      await page.locator('.lock.is-waited .count', { hasText: '1' }).waitFor();

      await openLock(page, 'order:7');
      await page.locator('.queue li', { hasText: 'api-1' }).waitFor();
      expect(await text(page, '#detail')).toContain(String(lease.fencingToken));
      await page.getByRole('button', { name: 'Take it away…' }).click();
      const submit = page.getByRole('button', { name: 'Take it away', exact: true });
      await page.getByLabel('Type the name of the lock').fill('order:');
      await page.getByLabel('Reason').fill('it hangs');
      expect(await submit.isDisabled()).toBe(true);
      await page.getByLabel('Type the name of the lock').fill('order:7');
      await submit.click();
      // The dialog ends, and the panel of the lock tells the outcome.
      await page.getByRole('dialog').waitFor({ state: 'hidden' });
      await page.locator('#detail').getByText('The lock is taken away.').waitFor();
      await until(() => lease.signal.aborted);
      const taken = await waiting;
      await page.locator('.holder a', { hasText: 'api-1' }).waitFor();
      await page.locator('.changes li', { hasText: 'it hangs (on the board)' }).waitFor();
      await taken.release();
      await row(page, 'order:7').waitFor({ state: 'detached' });
      expect(problems).toEqual([]);
    },
  );

  it.concurrent('comes back with what is there by then when its connection was cut', async () => {
    const { url, locks } = await start();
    const proxy = await TcpProxy.start(Number(new URL(url).port));
    environment.add(() => proxy.stop());
    const { page } = await open({ url: `http://127.0.0.1:${String(proxy.port)}/locks` });
    await live(page);
    const lease = await locks.acquire('before');
    await row(page, 'before').waitFor();
    proxy.refuse(true);
    proxy.cut();
    await page.getByText('Connection lost, trying again').waitFor();
    await lease.release();
    await locks.acquire('after');
    proxy.refuse(false);
    await live(page);
    await row(page, 'after').waitFor();
    expect(await row(page, 'before').count()).toBe(0);
  });

  it.concurrent('says that the store is gone, and goes on when it is back', async () => {
    const own = await environment.server();
    const { url, locks } = await start({}, own);
    await locks.acquire('order:7');
    const { page, problems } = await open({ url, width: 360 });
    await row(page, 'order:7').waitFor();
    await own.kill();
    await page.getByRole('alert').getByText('The locks cannot be read').waitFor();
    await attention(page)
      .getByText(/^The (node|store) .*is away/)
      .waitFor();
    expect(await row(page, 'order:7').count()).toBe(1);
    // The reason of the connection wraps.
    expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBe(360);
    expect(await violations(page)).toEqual([]);
    await own.restart();
    await page.getByRole('alert').waitFor({ state: 'hidden' });
    await attention(page).getByText('Nothing unusual').waitFor();
    expect(problems).toEqual([]);
  });

  it.concurrent('says why an action has failed, and acts once it gets through', async () => {
    const { url, locks } = await start({ readOnly: false, guards: [LETS_IN] });
    const lease = await locks.acquire('order:7');
    const { page } = await open({ url });
    await live(page);
    await openLock(page, 'order:7');
    await page.getByRole('button', { name: 'Ask for it…' }).click();
    await fillIn(page, 'order:7');
    const submit = page.getByRole('button', { name: 'Ask its holders' });
    const told = page.getByRole('dialog').getByRole('status');
    await page.route('**/ask?*', (route) => route.fulfill({ status: 502, body: '<html>Bad gateway</html>' }));
    await submit.click();
    await told.getByText('It has failed: the answer was 502').waitFor();
    await page.unroute('**/ask?*');
    await page.route('**/ask?*', (route) => route.fulfill({ body: '<html>Log in</html>' }));
    await submit.click();
    await told.getByText('It has failed: the answer is not one of the board; load the page again').waitFor();
    await page.unroute('**/ask?*');
    expect(lease.releaseRequested.aborted).toBe(false);
    await submit.click();
    await page.locator('#detail').getByText('Its holder has been asked.').waitFor();
    expect(await page.getByRole('dialog').count()).toBe(0);
    expect(lease.releaseRequested.aborted).toBe(true);
  });

  it.concurrent('says in words what is unusual, and is calm otherwise', async () => {
    const { url, locks, other } = await start({ limit: 100 }, await environment.server());
    const { page, problems } = await open({ url });
    await live(page);
    await attention(page).getByText('Nothing unusual').waitFor();
    await attention(page).getByText('0 locks held · no caller waits').waitFor();
    // A stuck holder: its group is known by the holds of the serving process.
    for (const n of [1, 2, 3, 4]) await locks.using(`order:${String(n)}`, { label: 'order:$<id>' }, () => n);
    await other.acquire('order:7');
    const waiting = [locks.acquire('order:7'), locks.acquire('order:7')];
    const stuck =
      /^order:7 has been held by worker-1 for \d+ s, usually [\d.]+ m?s\. 2 callers wait, the longest for \d+ s\.$/;
    await attention(page).getByRole('link', { name: stuck }).waitFor();
    await attention(page).getByText('See what worker-1 does. It can be asked for the lock;').waitFor();
    await attention(page)
      .getByText(/1 lock held · 2 callers wait for 1 lock · longest wait/)
      .waitFor();
    await attention(page).getByRole('link', { name: stuck }).click();
    await page.locator('#detail .holders', { hasText: 'worker-1' }).waitFor();
    expect(await violations(page)).toEqual([]);
    await locks.forceRelease('order:7');
    for (const next of waiting) await (await next).release();
    await attention(page).getByText('Nothing unusual').waitFor();
    expect(problems).toEqual([]);
  });

  it.concurrent('shows a deadlock of two processes: what each holds, and what it waits for', async () => {
    const { url, other, another } = await start();
    const third = another('worker-2');
    let inside = 0;
    const bothInside = deferred();
    const deadlocked = async (service: LockService, name: string) => {
      if (++inside === 2) bothInside.resolve();
      await bothInside.promise;
      await service.acquire(name, { waitTime: '1m' });
    };
    const both = [
      other.using('x', () => deadlocked(other, 'y')),
      third.using('y', () => deadlocked(third, 'x')),
    ];
    const { page } = await open({ url });
    await attention(page)
      .getByText(/^Deadlock for \d+ s: .*worker-1 holds x and waits for y/)
      .waitFor();
    await attention(page)
      .getByText(/worker-2 holds y and waits for x/)
      .waitFor();
    await attention(page).getByText('Take the locks in one order, or as one multi-lock.').waitFor();
    await other.forceRelease('x');
    await other.forceRelease('y');
    await Promise.allSettled(both);
  });

  it.concurrent('puts locks into groups with their numbers, and shows all of one holder', async () => {
    const { url, locks, other } = await start();
    for (let n = 0; n < 5; n++) await locks.using(`order:${String(n)}`, { label: 'order:$<id>' }, () => n);
    for (let n = 0; n < 40; n++) await other.acquire(`order:${String(100 + n)}`);
    await locks.acquire('report');
    const waiting = other.acquire('report');
    const { page, problems } = await open({ url });
    await live(page);
    const group = page.locator('.group', { hasText: 'order:$<id>' });
    await group.getByText(/^40 locks, [\d.]+ a minute$/).waitFor();
    await group.getByText('40 locks held').waitFor();
    await group
      .locator('.age')
      .getByText(/p50 [\d.]+ m?s, p99 [\d.]+ m?s/)
      .waitFor();
    await group
      .locator('.wait')
      .getByText(/p50 [\d.]+ m?s, p99 [\d.]+ m?s/)
      .waitFor();
    expect(await page.locator('.lock').count()).toBe(1);
    // By keys: what comes above the table meanwhile moves it away from under the pointer.
    await group.getByRole('link').press('Enter');
    await row(page, 'order:139').waitFor({ state: 'attached' });
    await group.getByRole('link').press('Enter');
    await row(page, 'order:139').waitFor({ state: 'detached' });
    // The lock with the longest wait is first.
    expect(await page.locator('.entry .name a').first().innerText()).toBe('report');
    await row(page, 'report').getByRole('link', { name: 'api-1' }).click();
    await page.getByText('1 of 41 locks').waitFor();
    expect(await text(page, '#holder')).toContain('Holds 1 lock');
    await page.getByRole('link', { name: 'Show all holders' }).click();
    await page.goto(`${url}?holder=worker-1`);
    await page.locator('#holder').getByText('Holds 40 locks, and waits for 1 lock.').waitFor();
    await page.locator('#holder').getByText('waits for report').waitFor();
    await row(page, 'report').waitFor();
    expect(problems).toEqual([]);
    await locks.forceRelease('report');
    await (await waiting).release();
  });

  it.concurrent.each([
    ['light', 1280],
    ['dark', 1280],
    ['light', 360],
    ['dark', 360],
  ] as const)('has no barriers: %s, %d px', async (theme, width) => {
    const { url, locks, other } = await start({ readOnly: false, guards: [LETS_IN] });
    await locks.acquire('order:7');
    await other.getSemaphore('mail', 2).acquire();
    const long = await other.getFairLock('a'.repeat(300)).acquire();
    const waiting = locks.getFairLock('a'.repeat(300)).acquire();
    void other.getElection('scheduler').run(() => undefined);
    const { page, problems } = await open({ url, theme, width });
    await live(page);
    await page.locator('.lock.is-waited').waitFor();
    expect(await violations(page)).toEqual([]);
    expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBe(width);
    await page.locator('.lock.is-waited .name a').click();
    await page.locator('.queue li').waitFor();
    expect(await violations(page)).toEqual([]);
    await page.getByRole('button', { name: 'Ask for it…' }).click();
    expect(await violations(page)).toEqual([]);
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Keyboard help' }).click();
    expect(await violations(page)).toEqual([]);
    expect(problems).toEqual([]);
    await long.release();
    await (await waiting).release();
  });

  it.concurrent('works by keys alone', async () => {
    const { url, locks } = await start();
    for (const name of ['a:1', 'a:2', 'b:3']) await locks.acquire(name);
    const { page, problems } = await open({ url });
    await live(page);
    await row(page, 'b:3').waitFor();
    const focused = () => page.evaluate<string>('document.activeElement?.textContent');
    const keys = async (...pressed: string[]) => {
      for (const key of pressed) await page.keyboard.press(key);
    };
    // The first row is the group of two.
    await keys('ArrowUp');
    expect(await focused()).toBe('a:*');
    await keys('ArrowDown', 'ArrowDown');
    expect(await focused()).toBe('a:2');
    await keys('End');
    expect(await focused()).toBe('b:3');
    await keys('ArrowDown', 'Home', 'ArrowDown');
    expect(await focused()).toBe('a:1');
    await keys('Enter');
    await page.locator('#detail', { hasText: 'a:1' }).waitFor();
    expect(page.url()).toContain('?lock=a%3A1');
    await keys('Escape');
    expect(await page.locator('#detail').isVisible()).toBe(false);
    expect(await focused()).toBe('a:1');
    await keys('/', 'b', ':');
    await row(page, 'a:1').waitFor({ state: 'detached' });
    await keys('ArrowDown');
    expect(await focused()).toBe('b:3');
    await keys('/', 'Escape');
    await row(page, 'a:1').waitFor();
    await keys('?');
    expect(await page.getByRole('dialog', { name: 'Keyboard' }).isVisible()).toBe(true);
    await keys('Escape');
    expect(await page.getByRole('dialog').count()).toBe(0);
    // All that can be reached: links, fields and one row.
    for (let n = 0; n < 4; n++) await keys('Tab');
    const reached = await page.evaluate<string>('document.activeElement?.tagName');
    expect(['A', 'BUTTON', 'INPUT', 'SELECT', 'UL']).toContain(reached);
    expect(await page.locator('.entry .name a[tabindex="0"]').count()).toBe(1);
    expect(problems).toEqual([]);
  });

  it.concurrent(
    'sorts, filters, and keeps the theme that is chosen, also where the browser keeps nothing',
    async () => {
      const { url, locks, other } = await start();
      await locks.acquire('b');
      const { page, problems } = await open({ url });
      // An age has the precision of two clocks and a round trip.
      await page.locator('.lock .age time', { hasText: /[1-9]/ }).waitFor();
      await locks.acquire('a');
      const waiting = other.acquire('a');
      await page.locator('.lock.is-waited').waitFor();
      await live(page);
      const names = () => page.locator('.lock .name a').allInnerTexts();
      // The longest wait first.
      expect(await names()).toEqual(['a', 'b']);
      await page.getByRole('link', { name: 'Held for' }).click();
      expect(await names()).toEqual(['b', 'a']);
      await page.getByRole('link', { name: 'Lock', exact: true }).click();
      expect(await names()).toEqual(['a', 'b']);
      await page.getByRole('link', { name: 'Lock', exact: true }).click();
      expect(await names()).toEqual(['b', 'a']);
      await page.getByLabel('State').selectOption('Waited for');
      expect(await names()).toEqual(['a']);
      await page.getByLabel('Kind').selectOption('fair');
      await page.getByText('No lock is like that.').waitFor();
      const ground = () => page.evaluate<string>('getComputedStyle(document.body).backgroundColor');
      const light = await ground();
      await page.keyboard.press('t');
      expect(await ground()).not.toBe(light);
      await page.reload();
      expect(await ground()).not.toBe(light);
      expect(problems).toEqual([]);

      const denied = await open({ url, before: denyStorage });
      await live(denied.page);
      await denied.page.keyboard.press('t');
      expect(await denied.page.evaluate<string>('document.documentElement.dataset.theme')).toBe('dark');
      expect(denied.problems).toEqual([]);
      await locks.forceRelease('a');
      await (await waiting).release();
    },
  );

  it.concurrent('can be read without a script', async () => {
    const { url, locks } = await start();
    const lease = await locks.acquire('order:7');
    const { page, problems } = await open({ url, script: false });
    expect(await row(page, 'order:7').innerText()).toContain('api-1');
    expect(await page.getByText('Load the page again').isVisible()).toBe(true);
    await page.getByRole('searchbox').fill('order:9');
    await page.getByRole('button', { name: 'Show' }).click();
    await page.getByText('No lock is like that.').waitFor();
    await page.goto(url);
    await page.getByRole('link', { name: 'api-1' }).click();
    expect(await text(page, '#holder')).toContain('Holds 1 lock, and waits for 0 locks.');
    await openLock(page, 'order:7');
    expect(await text(page, '#detail')).toContain(`fencing token ${String(lease.fencingToken)}`);
    await page.getByRole('link', { name: 'Close' }).click();
    expect(await page.locator('#detail').isVisible()).toBe(false);
    expect(problems).toEqual([]);
  });

  it.concurrent('shows hostile names as they are', async () => {
    const { url, locks } = await start();
    const hostile = `<img src=x onerror="alert(1)"><script>alert(2)</script>`;
    await locks.acquire(hostile);
    const { page, problems } = await open({ url });
    await live(page);
    const link = page.locator('.lock .name a');
    expect(await link.innerText()).toBe(hostile);
    await link.click();
    await page.locator('.holders li').waitFor();
    expect(await text(page, '#detail h2')).toBe(hostile);
    expect(await page.locator('img, body script:not(#state)').count()).toBe(0);
    await page.reload();
    await page.locator('.holders li').waitFor();
    expect(problems).toEqual([]);
  });
});

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What axe finds, as ids with the places. */
async function violations(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  return await page.evaluate(async () => {
    const { axe } = globalThis as unknown as {
      axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
    };
    const { violations: found } = await axe.run();
    return found.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
  });
}

/** In the page: as a browser that denies storage to a site. */
function denyStorage(): void {
  Object.defineProperty(globalThis, 'localStorage', {
    get: () => {
      throw new Error('denied');
    },
  });
}
