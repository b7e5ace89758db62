import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser } from 'playwright-core';
import { chromiumProgram, launchChromium, view } from '../../board/chromium.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const site = join(root, 'dist/site');
const hasChromium = chromiumProgram() !== undefined;
const TYPES: Record<string, string> = {
  '.html': 'text/html',
  '.css': 'text/css',
  '.js': 'text/javascript',
  '.svg': 'image/svg+xml',
};

beforeAll(() => {
  execFileSync('npm', ['run', 'site'], { cwd: root, stdio: 'pipe' });
}, 600_000);

/** The file of an address, as hosts of static pages find it. */
const fileOf = (path: string): string | undefined =>
  [path, `${path}.html`, posix.join(path, 'index.html')]
    .map((name) => join(site, name))
    .find((file) => existsSync(file) && statSync(file).isFile());

it('leads nowhere but to pages of the site, and to anchors that they have', () => {
  const pages = readdirSync(site, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.html'),
  );
  expect(pages.length).toBeGreaterThan(100);
  const text = new Map(pages.map((name) => [join(site, name), readFileSync(join(site, name), 'utf8')]));
  const dead = [...text].flatMap(([from, html]) =>
    [...html.matchAll(/<a [^>]*?href="(\/[^"]*|#[^"]+)"/g)].flatMap(([, href = '']) => {
      const [path = '', anchor] = decodeURIComponent(href).split('#');
      const file = path === '' ? from : fileOf(path);
      if (file === undefined) return [`${from}: ${href}`];
      return anchor === undefined || text.get(file)?.includes(`id="${anchor}"`) === true
        ? []
        : [`${from}: ${href}`];
    }),
  );
  expect(dead).toEqual([]);
});

const title = hasChromium ? 'in Chromium' : 'in Chromium (skipped: there is no chromium)';
(hasChromium ? describe : describe.skip)(title, () => {
  const server = createServer(({ url = '' }, response) => {
    const file = fileOf(decodeURIComponent(new URL(url, 'http://site').pathname));
    response.writeHead(file === undefined ? 404 : 200, {
      'content-type': TYPES[extname(file ?? '')] ?? 'text/plain',
    });
    response.end(file === undefined ? '' : readFileSync(file));
  });
  let browser: Browser;
  let origin: string;

  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    origin = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
    browser = await launchChromium();
  });

  afterAll(async () => {
    await browser.close();
    server.close();
  });

  it.each([
    ['/', 'light'],
    ['/guide/board', 'dark'],
    ['/api/index/classes/LockService', 'light'],
    ['/api/index/classes/LockService', 'dark'],
  ] as const)('shows %s in its %s theme, without errors and other hosts', async (path, theme) => {
    const { page, problems, close } = await view(browser, { url: origin + path, theme });
    await page.locator('html[class*="dark"]').count();
    const background = await page.evaluate<string>('getComputedStyle(document.body).backgroundColor');
    expect(background === 'rgb(255, 255, 255)').toBe(theme === 'light');
    for (const picture of await page.locator('main img').all()) {
      await picture.scrollIntoViewIfNeeded();
      await expect(
        picture.evaluate((image) => (image as { decode(): Promise<void> }).decode()),
      ).resolves.toBeUndefined();
    }
    expect(problems).toEqual([]);
    await close();
  });

  it('reads the guide in its order, and finds words of the guide and of the API', async () => {
    const { page, problems, close } = await view(browser, { url: `${origin}/guide/module` });
    await page.locator('.pager-link.next').click();
    await page.waitForURL(`${origin}/guide/decorator`);
    await page.locator('#local-search button').click();
    for (const [word, target] of [
      ['kill_timeout', '/guide/processes'],
      ['LockOptionsFactory', '/api/index/'],
    ] as const) {
      await page.locator('.VPLocalSearchBox input').fill(word);
      await page.locator(`.VPLocalSearchBox a.result[href*="${target}"]`).first().waitFor();
    }
    expect(problems).toEqual([]);
    await close();
  });
});
