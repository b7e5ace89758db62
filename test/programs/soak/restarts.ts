import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import type { RedisServer } from '../../support/redis-server.js';

/** A restart, and what became of the locks. */
export interface Restart {
  /** s since the begin. */
  readonly at: number;
  readonly way: 'stopped' | 'killed';
  /** From its end until the server answered again, ms. */
  readonly away: number;
  /** From that answer until a buyer had the lock, ms. */
  firstLock?: number;
}

/** Restarts of the server, in turn by SIGTERM and SIGKILL. It keeps its data. */
export class Restarts {
  readonly list: Restart[] = [];
  #next: number;
  #up = Infinity;

  /** @param every s */
  constructor(
    private readonly server: RedisServer,
    private readonly every: number,
  ) {
    this.#next = every;
  }

  isDue(at: number): boolean {
    return at >= this.#next;
  }

  /** @param delay ms, so that it strikes among the buyers */
  async strike(at: number, delay: number): Promise<void> {
    this.#next += this.every;
    await setTimeout(delay);
    const way = this.list.length % 2 === 0 ? 'stopped' : 'killed';
    const begun = performance.now();
    if (way === 'stopped') await this.#stop();
    await this.server.restart();
    this.#up = performance.now();
    this.list.push({ at, way, away: this.#up - begun });
  }

  /** @param times when locks were taken */
  taken(times: readonly number[]): void {
    const restart = this.list.at(-1);
    if (restart === undefined || restart.firstLock !== undefined) return;
    const first = Math.min(...times.filter((time) => time > this.#up));
    if (Number.isFinite(first)) restart.firstLock = first - this.#up;
  }

  async #stop(): Promise<void> {
    const { pid } = this.server;
    const client = this.server.client();
    const closed = once(client, 'close');
    process.kill(pid!, 'SIGTERM');
    await closed;
    while (this.server.pid !== undefined) await setTimeout(5);
  }
}
