/**
 * A caller of a lock in another process, with the words of Redisson's RLock: a thread of a JVM, or a scope of a Node process,
 * which re-enters its locks as a thread does. It does one thing after another. Times are ms.
 */
export interface LockThread {
  /**
   * @param lease without one, the watchdog renews it
   * @returns when it was granted
   */
  lock(name: string, lease?: number): Promise<number>;
  /** As `lock`, until {@link interrupt}: then it rejects. */
  lockInterruptibly(name: string): Promise<number>;
  /** Ends the wait that goes on. */
  interrupt(): Promise<void>;
  tryLock(name: string, options?: { wait?: number; lease?: number }): Promise<boolean>;
  /**
   * @returns when it was sent
   * @throws where this caller does not hold the lock
   */
  unlock(name: string): Promise<number>;
  forceUnlock(name: string): Promise<boolean>;
  isLocked(name: string): Promise<boolean>;
  /** By this caller. */
  isHeld(name: string): Promise<boolean>;
  /** How often this caller has entered it. */
  holdCount(name: string): Promise<number>;
  /** 0 or less where the lock is free. */
  remainTimeToLive(name: string): Promise<number>;
}
