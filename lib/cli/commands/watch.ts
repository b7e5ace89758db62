import { usageFailure } from '../command-failure.js';
import { EXIT } from '../exit-code.js';
import { failureOf } from '../failure.js';
import type { Given } from '../given.js';
import { type FoundLocks, findLocks, type Search, searchOf } from '../locks.js';
import { lockTable } from '../output/lock-table.js';
import type { Screen } from '../output/screen.js';
import { fit, json } from '../output/text.js';
import { answerWithin, openService } from '../service.js';
import { Stopping } from '../stopping.js';

const INTERVAL = 1_000;
const TIMEOUT = 5_000;

/** Another page of the terminal, without a cursor; and back. */
const [ENTER, LEAVE] = ['\x1b[?1049h\x1b[?25l', '\x1b[?25h\x1b[?1049l'];
const [HOME, END_OF_LINE, END_OF_SCREEN] = ['\x1b[H', '\x1b[K', '\x1b[J'];

/** Shows the locks again and again, until it is stopped. An outage is shown, and it goes on. */
export async function run(given: Given, screen: Screen): Promise<number> {
  const search = searchOf(given);
  const interval = given.time('interval', INTERVAL, 100);
  const timeout = given.time('timeout', TIMEOUT, 1);
  const asJson = given.flag('json');
  if (!asJson && !screen.isTerminal) throw usageFailure('watch needs a terminal, or --json');
  const service = openService(given);
  const stopping = new Stopping({ byKeys: !asJson });
  let page: (() => string) | undefined;
  const stopDrawing = screen.onResize(() => {
    if (page !== undefined) screen.write(page());
  });
  if (!asJson) screen.write(ENTER);
  try {
    while (!stopping.isStopped) {
      const found = await Promise.race([
        answerWithin(timeout, findLocks(service, search)).catch(failureOf),
        stopping.stopped,
      ]);
      if (found === undefined) break;
      if (asJson) screen.print(json(lineOf(found)));
      else {
        const time = new Date().toTimeString().slice(0, 8);
        page = () => pageOf(found, time, search, screen);
        screen.write(page());
      }
      await stopping.sleep(interval);
    }
  } finally {
    stopDrawing();
    if (!asJson) screen.write(LEAVE);
    stopping.end();
    void service.close().catch(() => undefined);
  }
  return stopping.exitCode ?? EXIT.done;
}

type Found = FoundLocks | Error;

const lineOf = (found: Found): object => {
  const at = new Date().toISOString();
  return found instanceof Error ? { at, error: found.message } : { at, ...found };
};

/** Each line is written over the one before, so that nothing flickers. */
function pageOf(found: Found, time: string, { limit }: Search, screen: Screen): string {
  const lines =
    found instanceof Error
      ? [screen.style('red', fit(found.message, screen.width))]
      : tableOf(found, limit, screen);
  const all = [fit(`${time}   q: quit`, screen.width), '', ...lines];
  return `${HOME}${all.map((line) => line + END_OF_LINE).join('\r\n')}${END_OF_SCREEN}`;
}

function tableOf({ locks, more }: FoundLocks, limit: number, screen: Screen): string[] {
  const [titles = '', ...rows] = lockTable(locks, screen.width);
  const room = Math.max(1, screen.height - 4);
  const shown = rows.length > room ? rows.slice(0, room) : rows;
  const rest = rows.length - shown.length;
  const beyond = more ? `more than ${String(limit)} locks` : `${String(rest)} more`;
  return [
    screen.style('bold', titles),
    ...shown,
    ...(rest > 0 || more ? [fit(`… ${beyond}`, screen.width)] : []),
  ];
}
