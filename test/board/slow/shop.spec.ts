import 'reflect-metadata';
import { afterAll, describe, expect, it, jest } from '@jest/globals';
import { openShop } from '../../../sample-app/test/open-shop.js';
import type { RushState } from '../../../sample-app/src/rush/rush.service.js';
import { chromiumProgram, launchChromium, view } from '../chromium.js';

const hasChromium = chromiumProgram() !== undefined;
const browser = hasChromium ? launchChromium() : undefined;
const shop = hasChromium ? openShop({ seats: 100, paymentTime: 10 }) : undefined;

afterAll(async () => {
  await (await browser)?.close();
  await (await shop)?.app.close();
});

jest.setTimeout(90_000);

/** The page of the shop, after a rush of 200 buyers. */
async function after(seats: Record<number, number>, tally: object, width = 1280) {
  const { url } = await shop!;
  const opened = await view(await browser!, { url: 'about:blank', width });
  const rush = {
    buyers: 200,
    locked: false,
    seats: Array.from({ length: 100 }, (_, index) => seats[index + 1] ?? 0),
    tally: { bought: 0, soldOut: 0, busy: 0, failed: 0, ...tally },
    running: false,
    time: 100,
  };
  const state: RushState = {
    show: 'tonight',
    rush,
    sold: 1,
    waitingHere: 0,
    holder: null,
    fencingToken: null,
  };
  await opened.page.route('**/rush/state', (route) => route.fulfill({ json: state }));
  await opened.page.goto(`${url}/rush`);
  await opened.page.locator('#seats li').first().waitFor();
  return opened.page;
}

const page = 'the page of the ticket shop in Chromium';
const title = hasChromium ? page : `${page} (skipped: there is no chromium)`;
(hasChromium ? describe : describe.skip)(title, () => {
  it.each([390, 1280])('shows all seats where one is sold 200 times, at %d px', async (width) => {
    const page = await after({ 1: 200 }, { bought: 200 }, width);
    expect(await page.locator('#verdict').innerText()).toBe('1 seat was sold more than once.');
    const [room, needed, seat, digits] = await page.evaluate<number[]>(`(() => {
      const main = document.querySelector('main');
      const seat = document.querySelector('#seats li');
      const digits = document.createRange();
      digits.selectNodeContents(seat);
      const widths = [seat, digits].map((each) => each.getBoundingClientRect().width);
      return [main.clientWidth, main.scrollWidth, ...widths];
    })()`);
    expect(needed).toBe(room);
    expect(digits).toBeLessThanOrEqual(seat!);
  });

  it('does not call it right where the shop has failed', async () => {
    const page = await after({}, { failed: 200 });
    const verdict = page.locator('#verdict');
    expect(await verdict.innerText()).toBe('The shop failed for 200 buyers. No seat was sold twice.');
    await page.route('**/rush/state', (route) => route.fulfill({ status: 503 }));
    await page.getByText('The shop answers 503').waitFor();
    expect(await verdict.getAttribute('class')).toBe('wrong');
  });
});
