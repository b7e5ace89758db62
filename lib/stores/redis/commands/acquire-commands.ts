import { now } from '../../../runtime/clock.js';
import { isLockKindMismatchError } from '../../../api/error-guards.js';
import { kindMismatch, PLAIN } from '../../../store/kind-mismatch.js';
import type {
  AcquireAllReply,
  AcquireAllRequest,
  AcquireReply,
  AcquireRequest,
  QueueRequest,
} from '../../../store/lock-store.js';
import { TransientMap } from '../../../store/transient-map.js';
import type { AcquisitionGuard, Argument, Command, Receipt } from './command.js';
import type { Confirmations } from './confirmations.js';
import type { Deployment } from '../connection/deployment.js';
import { FENCE_TTL } from './keys.js';
import { LETTERS, NOBODY } from '../messages/queue-protocol.js';
import { notALock, UnexpectedReply } from '../connection/redis-errors.js';
import { plainGroupReply, plainReply, type Queued, queueReply } from './replies.js';
import * as scripts from './script.js';
import type { ScriptCalls } from './script-calls.js';

/** Without a queue, no reply has a date. */
const undatedReply = (reply: unknown): AcquireReply | Queued => plainReply(reply, () => undefined);

/** Asks the server for locks of any kind. */
export class AcquireCommands {
  /** The acquisitions under way, by owner. */
  private readonly underway = new TransientMap<string, { unwanted: boolean }[]>();

  constructor(
    private readonly connection: Deployment,
    private readonly calls: ScriptCalls,
    private readonly confirmations: Confirmations,
  ) {}

  acquire(request: AcquireRequest): Promise<AcquireReply> {
    const { name, queue } = request;
    const ask = (receipt: Receipt | undefined) =>
      queue === undefined || queue.kind === 'lock'
        ? this.take(request, receipt)
        : this.enterQueue(request, queue, receipt);
    return this.confirmations.confirmed(name, ask, queue !== undefined && queue.entry === undefined);
  }

  private take(
    { name, owner, leaseTime, leastToken, queue }: AcquireRequest,
    receipt: Receipt | undefined,
  ): Promise<AcquireReply> {
    const keys = this.calls.keys(name);
    const args: Argument[] = [owner, leaseTime, leastToken ?? 0, leaseTime + FENCE_TTL];
    // An argument that is left out at the end costs client and server nothing.
    const arrival = queue?.entry === undefined ? '' : (queue.entry.arrival ?? 0);
    if (arrival !== '' || this.connection.isCluster) args.push(arrival, this.calls.clusterArgument);
    const command = { keys: queue === undefined ? [keys.lock, keys.fence] : keys.queued, args, receipt };
    const read = queue === undefined ? undatedReply : this.calls.readingClock(plainReply);
    return this.guarded(owner, [name], (acquisition) =>
      this.retiring(scripts.acquire, command, [name], read, acquisition),
    );
  }

  async acquireAll(request: AcquireAllRequest): Promise<AcquireAllReply> {
    const { names, owner, leaseTime, leastToken = 0 } = request;
    const made = names.map((name) => this.calls.keys(name));
    const keys = [...made.map(({ lock }) => lock), ...made.map(({ fence }) => fence)];
    const args = [owner, leaseTime, leastToken, leaseTime + FENCE_TTL];
    const read = (reply: unknown) => plainGroupReply(reply, names.length);
    const ask = async (receipt: Receipt | undefined): Promise<AcquireAllReply> => {
      const reply = await this.guarded(owner, names, (acquisition) =>
        this.retiring(scripts.acquireAll, { keys, args, receipt }, names, read, acquisition),
      );
      if ('notALock' in reply) throw notALock(names[reply.notALock] ?? '');
      if (reply.granted) return reply;
      const { index, ...refusal } = reply;
      return { ...refusal, name: names[index] ?? '' };
    };
    return await this.confirmations.confirmed(names[0] ?? '', ask, true);
  }

  private async enterQueue(
    { name, owner, leaseTime }: AcquireRequest,
    { kind, mode, capacity, entry, ownWriteHold }: QueueRequest,
    receipt: Receipt | undefined,
  ): Promise<AcquireReply> {
    const keys = this.calls.keys(name);
    const sentAt = now();
    const stands = entry === undefined ? 0 : 1;
    const args = [
      owner,
      LETTERS[mode],
      kind,
      capacity,
      leaseTime,
      stands,
      entry?.arrival ?? 0,
      ownWriteHold ?? '',
      FENCE_TTL,
      this.calls.clusterArgument,
    ];
    const answer = await this.guarded(owner, [name], async (acquisition) =>
      queueReply(await this.connection.run(scripts.queueAcquire, keys.queued, args, acquisition, receipt)),
    );
    if ('kind' in answer) throw kindMismatch(name, { kind, capacity }, answer);
    this.calls.clocks.of(answer.node).learn(answer.date, sentAt, now());
    return answer.reply;
  }

  /** A later release of the owner undoes requests that are still under way. */
  takeBack(owner: string): void {
    for (const acquisition of this.underway.get(owner) ?? []) acquisition.unwanted = true;
  }

  /**
   * Runs an acquisition. A release of the same owner takes it back while it is still under way. Not an async function: each
   * node of a quorum comes this way with each acquisition.
   */
  guarded<R>(
    owner: string,
    names: readonly string[],
    ask: (acquisition: AcquisitionGuard) => Promise<R>,
  ): Promise<R> {
    const acquisition = { unwanted: false };
    const asked = ask(acquisition);
    // Mostly there is one, for which no Set is made.
    const others = this.underway.get(owner);
    if (others === undefined) this.underway.set(owner, [acquisition]);
    else others.push(acquisition);
    return asked.then(
      (reply) => {
        this.over(owner, acquisition);
        return reply;
      },
      (error: unknown) => {
        this.over(owner, acquisition);
        throw isLockKindMismatchError(error) ? error : this.calls.translated(error, names.join(','));
      },
    );
  }

  private over(owner: string, acquisition: { unwanted: boolean }): void {
    const underway = this.underway.get(owner);
    if (underway === undefined || underway.length === 1) this.underway.delete(owner);
    else underway.splice(underway.indexOf(acquisition), 1);
  }

  /**
   * Asks for plain locks. A name that was last used as a kind with a queue is looked at separately, so that the other names
   * pay nothing for it: its queue may have waiters although the lock has no holder.
   * @param read says of a reply which name that is, if any
   */
  private retiring<R extends object>(
    script: scripts.Script,
    { keys, args, receipt }: Command,
    names: readonly string[],
    read: (reply: unknown) => R | Queued,
    acquisition: AcquisitionGuard,
  ): Promise<R> {
    // Each name once, and a few more times if the other kind comes back meanwhile.
    let tries = names.length + 3;
    const ask = (): Promise<R> =>
      this.connection.run(script, keys, args, acquisition, receipt).then((reply) => {
        const answer = read(reply);
        if (!('queued' in answer)) return answer;
        return this.retire(names[answer.queued] ?? '', acquisition, tries-- > 0).then(ask);
      });
    return ask();
  }

  /** @throws LockKindMismatchError if the other kind has the name, or `isWorthTrying` is false */
  private async retire(name: string, acquisition: AcquisitionGuard, isWorthTrying: boolean): Promise<void> {
    const { queued } = this.calls.keys(name);
    const args = [NOBODY, LETTERS.exclusive, '', 1, 1, 0, 0, '', FENCE_TTL, this.calls.clusterArgument];
    const retiring = this.connection.run(scripts.queueAcquire, queued, args, acquisition);
    const retired = await retiring.catch((error: unknown) => {
      // Of several names, this is the one that is no lock.
      const reason = this.calls.translated(error, name);
      throw isLockKindMismatchError(reason) ? reason : error;
    });
    const present = queueReply(retired);
    if (!('kind' in present)) throw new UnexpectedReply(retired);
    if (present.kind !== 'lock') throw kindMismatch(name, PLAIN, present);
    if (!isWorthTrying) throw kindMismatch(name, PLAIN, { ...present, kind: 'queued' });
  }
}
