import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';

/** Where this machine has a Chromium; CHROMIUM names another one. */
export function chromiumProgram(): string | undefined {
  const { CHROMIUM, PATH = '' } = process.env;
  const inPath = PATH.split(delimiter).flatMap((folder) =>
    ['chromium', 'chromium-browser', 'google-chrome'].map((name) => join(folder, name)),
  );
  return [...(CHROMIUM === undefined ? [] : [CHROMIUM]), ...inPath].find((file) => existsSync(file));
}

export const launchChromium = (): Promise<Browser> =>
  chromium.launch({ executablePath: chromiumProgram()!, args: ['--no-sandbox'] });

export interface ViewOptions {
  url: string;
  theme?: 'light' | 'dark';
  width?: number;
  height?: number;
  script?: boolean;
  /** Runs in the page before anything else. */
  before?: () => void;
}

/** A page of its own, and what is wrong with it: errors, refused content, requests to other hosts. */
export async function view(
  browser: Browser,
  { url, theme = 'light', width = 1280, height = 800, script = true, before }: ViewOptions,
): Promise<{ page: Page; problems: string[]; close: () => Promise<void> }> {
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: theme,
    javaScriptEnabled: script,
    reducedMotion: 'reduce',
  });
  if (before !== undefined) await context.addInitScript(before);
  const page = await context.newPage();
  const problems: string[] = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) problems.push(message.text());
  });
  page.on('pageerror', (error) => problems.push(error.stack ?? error.message));
  page.on('dialog', (dialog) => {
    problems.push(`a dialog of the browser: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('request', (request) => {
    const { protocol, host } = new URL(request.url());
    if (protocol !== 'data:' && host !== new URL(url).host) problems.push(`asks ${request.url()}`);
  });
  await page.goto(url);
  return { page, problems, close: () => context.close() };
}
