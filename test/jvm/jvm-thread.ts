import type { LockThread } from './lock-thread.js';

/** What a thread says of one turn, in ms on the clock that all processes of a machine share. */
export type Turn = [asked: number, granted: number, released: number];

export interface LoopOptions {
  /** @default 'plain' */
  kind?: 'plain' | 'fair' | 'spin';
  threads: number;
  /** ms for which it goes on */
  time: number;
  /** A key that each turn counts up, by reading and writing. Without it a turn does nothing. */
  counter?: string;
  /** How often each thread asks at most. @default as often as there is time */
  times?: number;
  /** ms for which a thread waits each time, and goes without its turn then. @default without an end */
  wait?: number;
}

type Word = string | number;

/** A thread of a JVM, which is an owner to Redisson. It does one thing after another. Times are ms. */
export class JvmThread implements LockThread {
  constructor(private readonly call: (verb: string, ...args: readonly Word[]) => Promise<unknown>) {}

  async now(): Promise<number> {
    return (await this.call('now')) as number;
  }

  /**
   * @param lease without one, Redisson's watchdog renews it
   * @returns when it was granted
   */
  async lock(name: string, lease = -1): Promise<number> {
    return (await this.call('lock', name, lease)) as number;
  }

  async lockInterruptibly(name: string): Promise<number> {
    return (await this.call('lockInterruptibly', name)) as number;
  }

  async interrupt(): Promise<void> {
    await this.call('interrupt');
  }

  async tryLock(name: string, { wait = 0, lease = -1 } = {}): Promise<boolean> {
    return (await this.call('tryLock', name, wait, lease)) as boolean;
  }

  /** @returns when it was sent */
  async unlock(name: string): Promise<number> {
    return (await this.call('unlock', name)) as number;
  }

  async forceUnlock(name: string): Promise<boolean> {
    return (await this.call('forceUnlock', name)) as boolean;
  }

  async isLocked(name: string): Promise<boolean> {
    return (await this.call('isLocked', name)) as boolean;
  }

  /** By this thread. */
  async isHeld(name: string): Promise<boolean> {
    return (await this.call('isHeld', name)) as boolean;
  }

  async holdCount(name: string): Promise<number> {
    return (await this.call('holdCount', name)) as number;
  }

  async remainTimeToLive(name: string): Promise<number> {
    return (await this.call('remainTimeToLive', name)) as number;
  }

  /** Further threads, which come back for a lock as soon as they were served. */
  async loop(name: string, options: LoopOptions): Promise<Turn[][]> {
    const { kind = 'plain', threads, time, counter, times = Number.MAX_SAFE_INTEGER, wait = -1 } = options;
    const counted = counter === undefined ? [] : [counter, times, wait];
    return (await this.call('loop', kind, name, threads, 0, time, ...counted)) as Turn[][];
  }
}
