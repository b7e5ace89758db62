import 'reflect-metadata';
import { afterAll, describe, expect, it, jest } from '@jest/globals';
import type { INestApplication } from '@nestjs/common';
import type { Page } from 'playwright-core';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { Board } from '../../../lib/board/board.js';
import { type Lease, LockService } from '../../../lib/index.js';
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
}, 30_000);

/** An application with a board, and locks of its own. */
async function start(board: BoardAppOptions['board'] = {}, own?: RedisServer) {
  const server = own ?? (await shared!);
  const space = { connection: server.url, keyPrefix: `space${String(++spaces)}:`, waitTime: '5m' } as const;
  const { app, url } = await startBoard({ locks: { ...space, label: 'api-1' }, board });
  apps.push(app);
  const other = environment.service({ ...space, label: 'worker-1' });
  return { app, url: `${url}/locks`, locks: app.get(LockService), other };
}

const open = async (options: ViewOptions) => view(await browser!, options);
const live = (page: Page) => page.locator('#live.is-live').waitFor();
const row = (page: Page, name: string) => page.getByRole('row').filter({ hasText: name });
const text = (page: Page, selector: string) => page.locator(selector).innerText();
/** What the dialog wants before it acts. */
async function fillIn(page: Page, name: string): Promise<void> {
  await page.getByLabel('Type the name of the lock').fill(name);
  await page.getByLabel('Reason').fill('it hangs');
}
const LETS_IN = { canActivate: () => true };

/** A busy machine has many browsers to run. */
jest.setTimeout(90_000);

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
      await page.locator('.holder .label', { hasText: 'worker-1' }).waitFor();
      const age = () => text(page, '.lock .age time');
      const first = await age();
      await until(async () => (await age()) !== first);
      const waiting = locks.acquire('order:7');
      await page.locator('.lock.is-waited .count', { hasText: '1' }).waitFor();

      await page.getByRole('link', { name: 'order:7' }).click();
      await page.locator('.queue li', { hasText: 'api-1' }).waitFor();
      expect(await text(page, '#detail')).toContain(String(lease.fencingToken));
      await page.getByRole('button', { name: 'Take it away…' }).click();
      const submit = page.getByRole('button', { name: 'Take it away', exact: true });
      await page.getByLabel('Type the name of the lock').fill('order:');
      await page.getByLabel('Reason').fill('it hangs');
      expect(await submit.isDisabled()).toBe(true);
      await page.getByLabel('Type the name of the lock').fill('order:7');
      await submit.click();
      await page.getByText('The lock is taken away.').waitFor();
      await until(() => lease.signal.aborted);
      const taken = await waiting;
      await page.getByRole('button', { name: 'Cancel' }).click();
      await page.locator('.holder .label', { hasText: 'api-1' }).waitFor();
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
    const { page, problems } = await open({ url });
    await row(page, 'order:7').waitFor();
    await own.kill();
    await page.getByRole('alert').getByText('The locks cannot be read').waitFor();
    expect(await row(page, 'order:7').count()).toBe(1);
    expect(await violations(page)).toEqual([]);
    await own.restart();
    await page.getByRole('alert').waitFor({ state: 'hidden' });
    expect(problems).toEqual([]);
  });

  it.concurrent('asks for the lock that is open while its tab is shown only', async () => {
    const { url, locks } = await start();
    await locks.acquire('order:7');
    const { page, problems } = await open({ url });
    await live(page);
    let asked = 0;
    page.on('request', (request) => {
      if (new URL(request.url()).pathname.endsWith('/lock')) asked++;
    });
    await page.clock.install();
    const isHidden = (hidden: boolean) =>
      page.evaluate(
        `Object.defineProperty(document, 'hidden', { value: ${String(hidden)}, configurable: true });
         document.dispatchEvent(new Event('visibilitychange'))`,
      );
    await row(page, 'order:7').getByRole('link').click();
    await page.locator('.holders li').waitFor();
    await page.clock.runFor(3_000);
    await until(() => asked >= 2);
    await isHidden(true);
    await page.waitForLoadState('networkidle').catch(() => undefined);
    asked = 0;
    await page.clock.runFor(25_000);
    expect(asked).toBe(0);
    await isHidden(false);
    await until(() => asked > 0);
    await page.clock.runFor(3_000);
    await until(() => asked >= 2);
    expect(problems).toEqual([]);
  });

  it.concurrent('stays smooth with 1,000 locks', async () => {
    const { url, locks, other } = await start({}, await environment.server());
    const names = Array.from({ length: 1_000 }, (_, n) => `cart:${String(n)}`);
    const leases = await Promise.all(names.map((name) => other.acquire(name, { leaseTime: '10m' })));
    const { page, problems } = await open({ url, before: countUpdates });
    await live(page);
    await until(async () => (await text(page, '#count')) === '1,000 locks');
    for (let n = 0; n < 5; n++) {
      await Promise.all(leases.splice(0, 20).map((lease: Lease) => lease.release()));
      await Promise.all(
        Array.from({ length: 20 }, (_, m) => locks.acquire(`order:${String(n)}-${String(m)}`)),
      );
      await page.getByText(`${String(n + 1)} of`).count();
      await page.waitForTimeout(250);
    }
    await page.getByRole('searchbox').fill('order:4-19');
    await row(page, 'order:4-19').waitFor();
    // A look at the store while locks come and go may miss some.
    await until(async () => (await text(page, '#count')) === '1 of 1,000 locks');
    await page.getByRole('searchbox').fill('');
    await page.mouse.move(400, 600);
    await until(async () => {
      await page.mouse.wheel(0, 20_000);
      return (await page.locator('.lock').count()) === 1_000;
    }, 60_000);
    await until(async () => (await updatesOf(page)).length > 5);
    const [initial = 0, ...later] = await updatesOf(page);
    process.stdout.write(
      `The board with 1,000 locks: ${initial.toFixed(1)} ms at first, then ${later.map((ms) => ms.toFixed(1)).join(', ')} ms\n`,
    );
    const median = later.sort((a, b) => a - b)[Math.floor(later.length / 2)] ?? Infinity;
    expect(median).toBeLessThan(4 * initial + 50);
    expect(problems).toEqual([]);
  });

  it.concurrent('moves the row of a lock that is taken anew, and no other', async () => {
    const { url, locks, other } = await start();
    const oldest = [await other.acquire('cart:a'), await other.acquire('cart:b')];
    await sleep(600);
    for (let n = 0; n < 90; n++) await other.acquire(`order:${String(n)}`, { leaseTime: '10m' });
    const { page, problems } = await open({ url });
    await live(page);
    await until(async () => (await page.locator('.lock').count()) === 92);
    const [first = '', second = ''] = await page.locator('.lock .name a').allInnerTexts();
    expect([first, second].sort()).toEqual(['cart:a', 'cart:b']);
    await page.evaluate(countRows);
    await Promise.all(oldest.map((lease) => lease.release()));
    await locks.acquire('cart:a');
    await row(page, 'cart:b').waitFor({ state: 'detached' });
    await page.locator('.lock:last-child', { hasText: 'cart:a' }).waitFor();
    // A look at the store may see the lock free, or not.
    expect(await page.evaluate<number>('rowsAdded')).toBe(1);
    expect(problems).toEqual([]);
  });

  it.concurrent('shows all locks where the end of the page stays in view while rows come', async () => {
    const { url, other } = await start();
    const names = Array.from({ length: 350 }, (_, n) => `cart:${String(n)}`);
    await Promise.all(names.map((name) => other.acquire(name, { leaseTime: '10m' })));
    const { page, problems } = await open({ url });
    await live(page);
    expect(await text(page, '#foot')).toBe('… 250 more');
    await page.evaluate(`
      const toEnd = () => scrollTo(0, document.documentElement.scrollHeight);
      new MutationObserver(toEnd).observe(document.querySelector('tbody'), { childList: true });
      toEnd();
    `);
    await until(async () => (await page.locator('.lock').count()) === 350);
    expect(await text(page, '#foot')).toBe('');
    expect(problems).toEqual([]);
  });

  it.concurrent('is no viewer in a tab that is opened hidden, or hidden for some seconds', async () => {
    const { app, url } = await start();
    const { feed } = app.get(Board, { strict: false }).instance(null)!;
    const { page, problems } = await open({ url, before: beHidden });
    await page.locator('#live').waitFor();
    await page.evaluate(`dispatchEvent(new Event('online'))`);
    await sleep(500);
    expect(feed.watched).toBe(0);
    await page.evaluate(`
      Object.defineProperty(document, 'hidden', { value: false, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    `);
    await until(() => feed.watched === 1);
    await live(page);
    await page.clock.install();
    await page.evaluate(beHidden);
    await page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`);
    await page.clock.runFor(6_000);
    await until(() => feed.watched === 0);
    expect(problems).toEqual([]);
  });

  it.concurrent('shows the first screen until events come, and then what they tell', async () => {
    const { url, locks } = await start();
    await locks.acquire('order:7');
    const { page, problems } = await open({ url });
    await live(page);
    const held: (() => void)[] = [];
    await page.route('**/events*', (route) => void held.push(() => void route.continue()));
    await page.reload();
    await until(() => held.length > 0);
    expect(await row(page, 'order:7').count()).toBe(1);
    expect(await page.getByText('Load the page again').isVisible()).toBe(true);
    await page.getByRole('searchbox').fill('order');
    await page.getByRole('link', { name: 'order:7' }).click();
    await page.locator('#detail', { hasText: 'order:7' }).waitFor();
    await page.unroute('**/events*');
    await page.reload();
    await live(page);
    expect(await page.locator('.lock').count()).toBe(1);
    expect(await page.getByText('Load the page again').isVisible()).toBe(false);
    expect(problems).toEqual([]);
  });

  it.concurrent('marks the lock that is open, also where its row comes later', async () => {
    const { url, locks } = await start();
    const lease = await locks.acquire('order:7');
    const { page, problems } = await open({ url: `${url}?lock=order:7` });
    await page.locator('.lock.is-open', { hasText: 'order:7' }).waitFor();
    await lease.release();
    await page.locator('.lock').waitFor({ state: 'detached' });
    await locks.acquire('order:7');
    await page.locator('.lock.is-open', { hasText: 'order:7' }).waitFor();
    await page.keyboard.press('Escape');
    expect(await page.locator('.lock.is-open').count()).toBe(0);
    expect(problems).toEqual([]);
  });

  it.concurrent('goes to the last of all locks by End, also of very many', async () => {
    const { url, other } = await start({ limit: 2_000 }, await environment.server());
    const names = Array.from({ length: 1_300 }, (_, n) => `cart:${String(n).padStart(4, '0')}`);
    await Promise.all(names.map((name) => other.acquire(name, { leaseTime: '10m' })));
    const { page, problems } = await open({ url });
    await live(page);
    await page.getByRole('button', { name: 'Lock', exact: true }).click();
    const focused = () => page.evaluate<string>('document.activeElement?.textContent');
    await page.keyboard.press('End');
    await until(async () => (await focused()) === 'cart:1299', 20_000);
    await page.keyboard.press('Home');
    expect(await focused()).toBe('cart:0000');
    expect(problems).toEqual([]);
  });

  it.concurrent('says why the lock that is open is not told, until it is', async () => {
    const { url, locks } = await start();
    await locks.acquire('order:7');
    const { page } = await open({ url });
    await live(page);
    await page.route('**/lock?*', (route) => route.fulfill({ status: 429, body: 'Too many' }));
    await row(page, 'order:7').getByRole('link').click();
    const told = page.locator('#detail').getByRole('status');
    await told.getByText('The lock cannot be read: the answer was 429').waitFor();
    await page.unroute('**/lock?*');
    await page.locator('.holders li').waitFor();
    expect(await told.innerText()).toBe('');
    await page.goto(`${url}?lock=${'a'.repeat(1_025)}`);
    await told.getByText('The lock cannot be read: ').waitFor();
    expect(await told.innerText()).toContain('at most 1024 bytes');
  });

  it.concurrent('acts with the token of this moment, which another tab may have changed', async () => {
    const { url, locks } = await start({ readOnly: false, guards: [LETS_IN] });
    const lease = await locks.acquire('order:7');
    const { page } = await open({ url });
    await live(page);
    await page.context().clearCookies();
    await row(page, 'order:7').getByRole('link').click();
    await page.getByRole('button', { name: 'Ask for it…' }).click();
    await page.getByLabel('Type the name of the lock').fill('order:7');
    await page.getByLabel('Reason').fill('it hangs');
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
    await told.getByText('Its holder has been asked.').waitFor();
    expect(lease.releaseRequested.aborted).toBe(true);
  });

  it.concurrent(
    'only asks for what it was to ask for, whatever the dialog is opened for meanwhile',
    async () => {
      const { url, locks } = await start({ readOnly: false, guards: [LETS_IN] });
      const [asked, other] = [await locks.acquire('order:7'), await locks.acquire('order:8')];
      const { page } = await open({ url });
      await live(page);
      await page.context().clearCookies();
      await row(page, 'order:7').getByRole('link').click();
      await page.getByRole('button', { name: 'Ask for it…' }).click();
      await fillIn(page, 'order:7');
      const isAsked = deferred();
      const goesOn = deferred();
      await page.route('**/ask?*', async (route) => {
        isAsked.resolve();
        await goesOn.promise;
        await route.continue();
      });
      await page.getByRole('button', { name: 'Ask its holders' }).click();
      await isAsked.promise;
      await page.getByRole('button', { name: 'Cancel' }).click();
      await row(page, 'order:8').getByRole('link').click();
      await page.getByRole('button', { name: 'Take it away…' }).click();
      goesOn.resolve();
      await until(() => asked.releaseRequested.aborted || asked.signal.aborted);
      expect([asked.signal.aborted, other.signal.aborted]).toEqual([false, false]);
      await page.waitForResponse((response) => response.url().includes('/lock?'));
      expect(await page.getByRole('dialog').getByRole('status').textContent()).toBe('');
      await fillIn(page, 'order:8');
      await page.getByRole('button', { name: 'Take it away', exact: true }).click();
      await page.getByText('The lock is taken away.').waitFor();
      await until(() => other.signal.aborted);
    },
  );

  it.concurrent('acts once, also where its fields are changed before the answer', async () => {
    const { url, locks } = await start({ readOnly: false, guards: [LETS_IN] });
    await locks.acquire('order:7');
    const { page } = await open({ url });
    await live(page);
    await row(page, 'order:7').getByRole('link').click();
    await page.getByRole('button', { name: 'Take it away…' }).click();
    await fillIn(page, 'order:7');
    const goesOn = deferred();
    await page.route('**/force?*', async (route) => {
      await goesOn.promise;
      await route.continue();
    });
    const submit = page.getByRole('button', { name: 'Take it away', exact: true });
    await submit.click();
    await page.getByText('On its way…').waitFor();
    await page.getByLabel('Reason').fill('it hangs, once more');
    expect(await submit.isDisabled()).toBe(true);
    goesOn.resolve();
    await page.getByText('The lock is taken away.').waitFor();
    await page.getByLabel('Reason').fill('it hangs');
    expect(await submit.isDisabled()).toBe(false);
  });

  it.concurrent('works at an address with a user and a password', async () => {
    const { url, locks } = await start();
    await locks.acquire('order:7');
    const { page, problems } = await open({ url: url.replace('//', '//ada:secret@') });
    await live(page);
    await row(page, 'order:7').getByRole('link').click();
    await page.locator('.holders li').waitFor();
    expect(problems).toEqual([]);
  });

  it.concurrent('tells a server that refuses the events from one that does not answer', async () => {
    const { url, locks } = await start();
    await locks.acquire('order:7');
    const { page } = await open({ url });
    await live(page);
    await page.route('**/events*', (route) => route.fulfill({ status: 401, body: 'Log in' }));
    await page.reload();
    await page.getByText('Refused, trying again').waitFor();
    // The newer one counts. Without any in between, an attempt would get through.
    await page.route('**/events*', (route) => route.abort());
    await page.getByText('Connection lost, trying again').waitFor();
    await page.unroute('**/events*');
    await live(page);
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
    await page.locator('.lock.is-waited a').click();
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
    await keys('ArrowDown');
    expect(await focused()).toBe('a:2');
    await keys('End');
    expect(await focused()).toBe('b:3');
    await keys('ArrowDown', 'Home');
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
    expect(['A', 'BUTTON', 'INPUT', 'UL']).toContain(reached);
    expect(await page.locator('.lock a[tabindex="0"]').count()).toBe(1);
    expect(problems).toEqual([]);
  });

  it.concurrent(
    'sorts, filters, and keeps the theme that is chosen, also where the browser keeps nothing',
    async () => {
      const { url, locks, other } = await start();
      await locks.acquire('b');
      // An age has the precision of two clocks and a round trip.
      await sleep(500);
      await locks.acquire('a');
      const waiting = other.acquire('a');
      const { page, problems } = await open({ url });
      await page.locator('.lock.is-waited').waitFor();
      const names = () => page.locator('.lock .name a').allInnerTexts();
      expect(await names()).toEqual(['b', 'a']);
      await page.getByRole('button', { name: 'Lock', exact: true }).click();
      expect(await names()).toEqual(['a', 'b']);
      await page.getByRole('button', { name: 'Lock', exact: true }).click();
      expect(await names()).toEqual(['b', 'a']);
      await page.getByRole('button', { name: 'Waiting' }).click();
      expect(await names()).toEqual(['a', 'b']);
      await page.getByRole('button', { name: 'Waited for' }).click();
      expect(await names()).toEqual(['a']);
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
    expect(await page.getByRole('searchbox').isVisible()).toBe(false);
    await page.getByRole('link', { name: 'order:7' }).click();
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
    const link = page.locator('.lock a');
    expect(await link.innerText()).toBe(hostile);
    await link.click();
    await page.locator('.holders li').waitFor();
    expect(await page.locator('h2').first().innerText()).toBe(hostile);
    expect(await page.locator('img, body script').count()).toBe(0);
    await page.reload();
    await page.locator('.holders li').waitFor();
    expect(problems).toEqual([]);
  });

  it.concurrent('shows what would hide in a name, and takes a name of several lines as typed', async () => {
    const { url, locks } = await start({ readOnly: false, guards: [LETS_IN] });
    const turned = await locks.acquire('\u202Elive\u202C');
    const lease = await locks.acquire('two\nlines  end');
    const unseen = await locks.acquire('two\u200blines');
    const { page, problems } = await open({ url });
    await live(page);
    const names = await page.locator('.lock .name a').allInnerTexts();
    const shown = [String.raw`\u202elive\u202c`, String.raw`two\u000alines  end`, String.raw`two\u200blines`];
    expect(names.sort()).toEqual(shown);
    for (const name of shown) {
      await page.getByRole('searchbox').fill(name);
      await until(async () => (await page.locator('.lock').count()) === 1);
      expect(await page.locator('.lock .name a').innerText()).toBe(name);
    }
    await page.getByRole('searchbox').fill('');
    await unseen.release();
    await row(page, 'u200b').waitFor({ state: 'detached' });
    await row(page, 'two').getByRole('link').click();
    await page.locator('.holders li').waitFor();
    await page.getByRole('button', { name: 'Take it away…' }).click();
    const submit = page.getByRole('button', { name: 'Take it away', exact: true });
    await page.getByLabel('Reason').fill('it hangs');
    await page.getByLabel('Type the name of the lock').fill('two lines  end');
    expect(await submit.isDisabled()).toBe(true);
    for (const typed of ['twolines  end', String.raw`two\u000alines  end`]) {
      await page.getByLabel('Type the name of the lock').fill(typed);
      expect(await submit.isDisabled()).toBe(false);
    }
    await submit.click();
    await page.getByText('The lock is taken away.').waitFor();
    await until(() => lease.signal.aborted);
    await turned.release();
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

/** In the page: notes how long each update takes. */
function countUpdates(): void {
  const page = globalThis as unknown as { updates: number[] };
  page.updates = [];
  new PerformanceObserver((list) => {
    for (const { name, duration } of list.getEntries())
      if (name === 'locks:update') page.updates.push(duration);
  }).observe({ entryTypes: ['measure'] });
}

/** In the page: counts the rows that come into the table, or into another place of it. */
function countRows(): void {
  interface Table {
    querySelector(selector: string): object;
  }
  interface Observer {
    observe(element: object, options: object): void;
  }
  const page = globalThis as unknown as {
    document: Table;
    rowsAdded: number;
    MutationObserver: new (told: (changes: { addedNodes: { length: number } }[]) => void) => Observer;
  };
  page.rowsAdded = 0;
  new page.MutationObserver((changes) => {
    for (const { addedNodes } of changes) page.rowsAdded += addedNodes.length;
  }).observe(page.document.querySelector('tbody'), { childList: true });
}

const updatesOf = (page: Page): Promise<number[]> =>
  page.evaluate(() => (globalThis as unknown as { updates: number[] }).updates);

/** In the page: as a tab that is opened behind another one. */
function beHidden(): void {
  Object.defineProperty((globalThis as unknown as { document: object }).document, 'hidden', {
    value: true,
    configurable: true,
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
