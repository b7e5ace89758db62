import { setTimeout as sleep } from 'node:timers/promises';

/** Only ends what hangs: a machine may have any speed. */
const PATIENCE = 60_000;

/** Waits for what only asking can tell, such as the state of another process. */
export async function until(condition: () => boolean | Promise<boolean>, patience = PATIENCE): Promise<void> {
  const end = performance.now() + patience;
  while (!(await condition())) {
    if (performance.now() > end)
      throw new Error(`Still not so after ${String(patience)} ms: ${String(condition)}`);
    await sleep(10);
  }
}
