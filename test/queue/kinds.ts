import { setTimeout as sleep } from 'node:timers/promises';
import type { Lock, LockService } from '../../lib/index.js';
import type { Worker } from '../support/worker.js';

/** As the worker's options name it. */
export interface Kind {
  readonly kind?: 'fair' | 'read' | 'write' | 'semaphore';
  readonly permits?: number;
}

export const FAIR: Kind = { kind: 'fair' };
export const READ: Kind = { kind: 'read' };
export const WRITE: Kind = { kind: 'write' };
export const semaphore = (permits: number): Kind => ({ kind: 'semaphore', permits });
export const PLAIN: Kind = {};

export function lockOf(service: LockService, name: string, { kind, permits = 1 }: Kind): Lock {
  if (kind === undefined) return service.getLock(name);
  if (kind === 'fair') return service.getFairLock(name);
  return kind === 'semaphore' ? service.getSemaphore(name, permits) : service.getReadWriteLock(name)[kind];
}

/** What a worker keeps of a lease. */
export interface Kept {
  id: number;
  owner: string;
  fencingToken: number;
  /** ms, at the moment of the grant. */
  remainingTime: number;
}

export const take = (worker: Worker, name: string, kind: Kind, options: object = {}): Promise<Kept> =>
  worker.call<Kept>('acquire', name, { ...kind, ...options });

/** How many stand in the store's queue. */
export const queueLength = async (service: LockService, name: string): Promise<number> =>
  (await service.inspect(name))?.queue.length ?? 0;

/** Goes on when so many stand in the queue, so that the next to ask comes after them. */
export async function queued(service: LockService, name: string, length: number): Promise<void> {
  const end = performance.now() + 60_000;
  for (let now; (now = await queueLength(service, name)) !== length;) {
    if (performance.now() > end)
      throw new Error(`${String(now)} instead of ${String(length)} wait for ${name}`);
    await sleep(5);
  }
}
