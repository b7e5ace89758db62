import { setTimeout as sleep } from 'node:timers/promises';

/** Waits for what only asking can tell, such as the state of another process. */
export async function until(condition: () => boolean | Promise<boolean>, patience = 15_000): Promise<void> {
  const end = performance.now() + patience;
  while (!(await condition())) {
    if (performance.now() > end)
      throw new Error(`Still not so after ${String(patience)} ms: ${String(condition)}`);
    await sleep(10);
  }
}
