import type { Given } from '../given.js';
import { EXIT } from '../exit-code.js';
import { findLocks, searchOf } from '../locks.js';
import { lockTable } from '../output/lock-table.js';
import type { Screen } from '../output/screen.js';
import { json } from '../output/text.js';
import { ask } from '../service.js';

export async function run(given: Given, screen: Screen): Promise<number> {
  const search = searchOf(given);
  const { locks, more } = await ask(given, (service) => findLocks(service, search));
  if (given.flag('json')) {
    screen.print(json({ locks, more }));
    return EXIT.done;
  }
  if (locks.length === 0) {
    screen.complain('There are no locks');
    return EXIT.done;
  }
  const [titles = '', ...lines] = lockTable(locks, screen.width);
  screen.print(screen.style('bold', titles));
  for (const line of lines) screen.print(line);
  if (more) screen.complain(`There are more than ${String(search.limit)} locks: see --limit and a prefix`);
  return EXIT.done;
}
