import { AsyncLocalStorage } from 'node:async_hooks';

/** A caller with a scope of its own, as a thread of Redisson is: it re-enters what it holds. One thing after another. */
export class LockThread {
  #service;
  #now;
  #inScope;
  #before = Promise.resolve();
  /** By name, the last one that was taken last. */
  #leases = new Map();
  #waiting = new AbortController();

  constructor(service, now) {
    this.#service = service;
    this.#now = now;
    // The scope stays open: it ends with the process.
    void service.runInScope(async () => {
      this.#inScope = AsyncLocalStorage.snapshot();
      await new Promise(() => undefined);
    });
  }

  run(verb, ...args) {
    const result = this.#before.then(() => this.#inScope(() => this[verb](...args)));
    this.#before = result.catch(() => undefined);
    return result;
  }

  interrupt() {
    this.#waiting.abort();
  }

  async lock(name, lease) {
    await this.#take(name, 'acquire', { waitTime: Infinity, ...termOf(lease) });
    return this.#now();
  }

  async tryLock(name, wait, lease) {
    return await this.#take(name, 'tryAcquire', { waitTime: wait, ...termOf(lease) });
  }

  async unlock(name) {
    const lease = this.#leasesOf(name).pop();
    const held = lease?.held === true;
    const released = this.#now();
    await lease?.release();
    if (!held) throw new Error(`This caller does not hold ${name}`);
    return released;
  }

  forceUnlock = (name) => this.#lockOf(name).forceRelease();
  isLocked = (name) => this.#lockOf(name).isLocked();
  isHeld = (name) => this.#lockOf(name).isHeld();
  holdCount = (name) => this.#lockOf(name).holdCount();
  remainTimeToLive = (name) => this.#lockOf(name).remainingTime();

  async #take(name, method, options) {
    this.#waiting = new AbortController();
    const lease = await this.#lockOf(name)[method]({ ...options, signal: this.#waiting.signal });
    if (lease !== null) this.#leasesOf(name).push(lease);
    return lease !== null;
  }

  #lockOf(name) {
    return this.#service.getLock(name);
  }

  #leasesOf(name) {
    if (!this.#leases.has(name)) this.#leases.set(name, []);
    return this.#leases.get(name);
  }
}

const termOf = (lease) => (lease === -1 ? {} : { leaseTime: lease });
