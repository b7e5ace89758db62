import type { Duration } from '../../api/duration.js';
import { LockConfigError } from '../../api/errors.js';
import type { LockClient } from '../../client/lock-client.js';
import { onAbort } from '../../client/waiting/on-abort.js';
import { answerWithin } from '../../client/waiting/answer-within.js';
import { signalOf } from '../../client/validation.js';
import type { AnswerOptions } from '../../api/options.js';
import type { Lease } from '../../api/lock.js';
import { leaseJson, type OwnLease } from '../own-lease.js';

/** The leases of a multi-lock as one: held while all are held, lost with the first loss, released together. */
export class LeaseGroup implements OwnLease {
  private loss: AbortController | undefined;
  private request: AbortController | undefined;
  private readonly ignore: (() => void)[] = [];
  private released = false;

  constructor(
    readonly name: string,
    readonly label: string,
    private readonly leases: readonly OwnLease[],
    private readonly client: Pick<LockClient, 'together'>,
  ) {}

  get owner(): string {
    return this.leases.map((lease) => lease.owner).join(',');
  }

  get isShared(): boolean {
    return this.leases.some((lease) => lease.isShared);
  }

  /** The greatest of the members' tokens. */
  get fencingToken(): number {
    return Math.max(...this.leases.map((lease) => lease.fencingToken));
  }

  /**
   * Each member's own token, for a resource that one of the members guards. Two services may each have a lock of one name. Then
   * it is the greater token, which grows from holder to holder as both do.
   */
  get fencingTokens(): ReadonlyMap<string, number> {
    const tokens = new Map<string, number>();
    for (const { name, fencingToken } of this.leases)
      tokens.set(name, Math.max(fencingToken, tokens.get(name) ?? 0));
    return tokens;
  }

  get signal(): AbortSignal {
    const { signal } = (this.loss ??= this.listenTo(({ signal }) => signal));
    // The clock decides: this reads the members, which announce a passed deadline even if the timer is late.
    this.remainingTime();
    return signal;
  }

  get releaseRequested(): AbortSignal {
    return (this.request ??= this.listenTo(({ releaseRequested }) => releaseRequested)).signal;
  }

  /** The grant of the last member. */
  get acquiredAt(): Date {
    return new Date(Math.max(...this.leases.map((lease) => lease.acquiredAt.getTime())));
  }

  /** From the grant of the last member to the first end of a member. */
  heldFor(): number {
    return Math.min(...this.leases.map((lease) => lease.heldFor()));
  }

  get held(): boolean {
    return this.leases.every((lease) => lease.held);
  }

  /** ms until the first end of a member. */
  remainingTime(): number {
    return Math.min(...this.leases.map((lease) => lease.remainingTime()));
  }

  async extend(leaseTime: Duration, options?: AnswerOptions): Promise<void> {
    this.extensionOf(leaseTime);
    await Promise.all(this.leases.map((lease) => lease.extend(leaseTime, options)));
  }

  /** Checks all members before the extension of the first one. */
  extensionOf(leaseTime: Duration): number {
    return Math.max(...this.leases.map((lease) => lease.extensionOf(leaseTime)));
  }

  assertHeld(): void {
    for (const lease of this.leases) lease.assertHeld();
  }

  /** Counts from the grant of the last member; the other members have been held longer. */
  set minHoldTime(time: number) {
    const heldFor = this.heldFor();
    for (const lease of this.leases) lease.minHoldTime = time + lease.heldFor() - heldFor;
  }

  handOver(): Promise<never> {
    const rule =
      'a multi-lock does not travel: hand over leases of single locks, each with a ticket of its own';
    return Promise.reject(new LockConfigError('handOver', rule, { key: this.name }));
  }

  async release(options?: AnswerOptions): Promise<void> {
    this.released = true;
    for (const ignore of this.ignore) ignore();
    // All members are released, even if the options are wrong.
    const released = this.client.together(() => Promise.all(this.leases.map((lease) => lease.release())));
    await answerWithin(released, this.name, { signal: signalOf(options, 'release') });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  toJSON(): object {
    return leaseJson(this);
  }

  giveOut(given: Lease): void {
    for (const lease of this.leases) lease.giveOut(given);
  }

  /**
   * Aborts with the first of the members' signals. A member may belong to an enclosing scope and outlive this group, so
   * the release removes all listeners.
   */
  private listenTo(signalOf: (lease: OwnLease) => AbortSignal): AbortController {
    const controller = new AbortController();
    const ignore = this.leases.map(signalOf).map((signal) =>
      onAbort(signal, () => {
        controller.abort(signal.reason);
      }),
    );
    if (this.released) for (const end of ignore) end();
    else this.ignore.push(...ignore);
    return controller;
  }
}
