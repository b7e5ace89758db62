import { type ChildProcess, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { RedisConnection } from '../../lib/index.js';

const LIBRARIES = fileURLToPath(new URL('libraries', import.meta.url));

/** Processes that increment one counter, one of which is stopped again and again in the middle of a transaction. */
export class CounterFleet {
  private readonly processes: ChildProcess[];
  private readonly begun = new EventEmitter();
  committed = 0;
  refused = 0;

  /** @param guard how `counter.mjs` guards its transactions */
  constructor(connection: RedisConnection, databasePort: number, guard: string) {
    const args = ['counter.mjs', JSON.stringify(connection), String(databasePort), guard];
    this.processes = Array.from({ length: 3 }, () => {
      const child = spawn(process.execPath, args, { cwd: LIBRARIES, stdio: ['pipe', 'pipe', 'inherit'] });
      createInterface({ input: child.stdout }).on('line', (line) => {
        if (line === 'committed') this.committed++;
        if (line === 'refused') this.refused++;
        if (line === 'begun') this.begun.emit('begun', child);
      });
      return child;
    });
  }

  /**
   * Stops a holder that has read and not written, until the next holder has read, too. A guard that locks the row lets no
   * other holder so far: then the stop lasts for longer than the lease of 300 ms.
   * @param strike what happens to Redis meanwhile
   */
  async pauseHolder(strike: () => Promise<unknown> = () => Promise.resolve()): Promise<void> {
    const [child] = (await once(this.begun, 'begun')) as [ChildProcess];
    child.kill('SIGSTOP');
    try {
      const next = Promise.race([once(this.begun, 'begun'), sleep(450)]);
      await strike();
      await next;
    } finally {
      child.kill('SIGCONT');
    }
  }

  async end(): Promise<void> {
    const ends = this.processes
      .filter(({ exitCode }) => exitCode === null)
      .map((child) => once(child, 'exit'));
    for (const child of this.processes) child.stdin?.end();
    await Promise.all(ends);
  }
}
