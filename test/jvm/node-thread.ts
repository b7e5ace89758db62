import type { Worker } from '../support/worker.js';
import type { LockThread } from './lock-thread.js';

/** A scope of a Node process with this package; see lock-thread.mjs. */
export class NodeThread implements LockThread {
  constructor(
    private readonly worker: Worker,
    private readonly thread: string,
  ) {}

  async lock(name: string, lease = -1): Promise<number> {
    return await this.call('lock', name, lease);
  }

  async lockInterruptibly(name: string): Promise<number> {
    return await this.call('lock', name, -1);
  }

  async interrupt(): Promise<void> {
    await this.worker.call('interrupt', this.thread);
  }

  async tryLock(name: string, { wait = 0, lease = -1 } = {}): Promise<boolean> {
    return await this.call('tryLock', name, wait, lease);
  }

  async unlock(name: string): Promise<number> {
    return await this.call('unlock', name);
  }

  async forceUnlock(name: string): Promise<boolean> {
    return await this.call('forceUnlock', name);
  }

  async isLocked(name: string): Promise<boolean> {
    return await this.call('isLocked', name);
  }

  async isHeld(name: string): Promise<boolean> {
    return await this.call('isHeld', name);
  }

  async holdCount(name: string): Promise<number> {
    return await this.call('holdCount', name);
  }

  async remainTimeToLive(name: string): Promise<number> {
    return await this.call('remainTimeToLive', name);
  }

  private call<T>(verb: keyof LockThread, ...args: unknown[]): Promise<T> {
    return this.worker.call('inThread', this.thread, verb, ...args);
  }
}
