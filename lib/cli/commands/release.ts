import { hostname, userInfo } from 'node:os';
import { createInterface } from 'node:readline/promises';
import { isatty } from 'node:tty';
import { inQuotes } from '../../runtime/text.js';
import { usageFailure } from '../command-failure.js';
import { EXIT } from '../exit-code.js';
import type { Given } from '../given.js';
import type { Screen } from '../output/screen.js';
import { json } from '../output/text.js';
import { ask } from '../service.js';

export async function run(given: Given, screen: Screen): Promise<number> {
  const [name = ''] = given.names;
  const reason = given.value('reason');
  const options = reason === undefined ? {} : { reason };
  const quoted = `"${inQuotes(name)}"`;
  const label = { label: asker() };
  if (!given.flag('force')) {
    const asked = await ask(given, (service) => service.requestRelease(name, options), { options: label });
    const text = asked > 0 ? `Asked ${count(asked)} of ${quoted}` : `No holder of ${quoted} could be asked`;
    return answer({ asked }, text, asked > 0);
  }
  if (!given.flag('yes') && !(await confirm(quoted)))
    return answer({ released: false }, 'Nothing is done', false);
  const released = await ask(given, (service) => service.forceRelease(name, options), { options: label });
  return answer({ released }, released ? `Released ${quoted}` : `${quoted} is not held`, released);

  function answer(value: object, text: string, isDone: boolean): number {
    if (given.flag('json')) screen.print(json(value));
    else if (isDone) screen.print(text);
    else screen.complain(text);
    return isDone ? EXIT.done : EXIT.no;
  }
}

const count = (holders: number): string => (holders === 1 ? 'the holder' : `${String(holders)} holders`);

/** The asker, as the holder sees it: the person, and not the process, which has ended by then. */
function asker(): string {
  try {
    return `${userInfo().username}@${hostname()}`.slice(0, 100);
  } catch {
    // A container may run as a user without a name.
    return hostname().slice(0, 100);
  }
}

/** @throws Failure if no terminal is there to ask */
async function confirm(quoted: string): Promise<boolean> {
  if (!isatty(0) || !isatty(2)) throw usageFailure('--force needs --yes without a terminal');
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const text = `Take ${quoted} away? Its holder goes on until it is told. [y/N] `;
    // Ctrl-C and Ctrl-D are no answer.
    const answer = await terminal.question(text).catch(() => '\n');
    if (answer === '\n') process.stderr.write(answer);
    return /^y(?:es)?$/i.test(answer.trim());
  } finally {
    terminal.close();
  }
}
