import type { HandOverReply, NextOwner, ReleaseReply, ReleaseRequest } from '../../../store/lock-store.js';
import type { AcquireCommands } from './acquire-commands.js';
import type { Argument } from './command.js';
import type { Deployment } from '../connection/deployment.js';
import { FENCE_TTL } from './keys.js';
import { LETTERS } from '../messages/queue-protocol.js';
import { isWithheld, UnexpectedReply } from '../connection/redis-errors.js';
import { handOverReply, releaseReplies, releaseReply } from './replies.js';
import * as scripts from './script.js';
import type { ScriptCalls } from './script-calls.js';

/** A release that has been asked for and not been sent. */
interface Collected {
  readonly request: ReleaseRequest;
  /** Reads the answer. */
  readonly released: (reply: ReleaseReply) => ReleaseReply;
  readonly resolve: (reply: ReleaseReply | Promise<ReleaseReply>) => void;
  readonly reject: (error: unknown) => void;
}

/** Tells the server the released holds. */
export class ReleaseCommands {
  /** The releases of plain locks that have been asked for inside of `together`. */
  private collected: Collected[] | undefined;

  constructor(
    private readonly connection: Deployment,
    private readonly calls: ScriptCalls,
    private readonly acquiring: Pick<AcquireCommands, 'takeBack'>,
  ) {}

  release(request: ReleaseRequest): Promise<ReleaseReply> {
    const { name, queue } = request;
    if (this.collected !== undefined && mayTravel(request)) return this.collect(this.collected, request);
    if (queue === undefined || queue.kind === 'lock') return this.leaveAlone(request);
    const { owner, keepFor = 0, leaseTime = 0 } = request;
    const { mode, kind, capacity } = queue;
    const args = [
      owner,
      LETTERS[mode],
      kind,
      capacity,
      keepFor,
      leaseTime,
      FENCE_TTL,
      this.calls.clusterArgument,
    ];
    const { queued } = this.calls.keys(name);
    return this.calls.run(scripts.queueRelease, queued, args, name, this.readerOf(request));
  }

  /**
   * Gives up a plain lock, and in the same step takes an entry for the next owner. As for any acquisition, an answer over another
   * connection counts as none: the first copy may arrive after the release of the next owner.
   */
  async passOn(request: ReleaseRequest, next: NextOwner): Promise<HandOverReply> {
    const released = this.releasing(request);
    const reply = await this.leave(request, next, this.calls.readingClock(handOverReply));
    return { ...reply, released: released(reply.released) };
  }

  /** What one owner gives up while `run` runs travels as one command. */
  together<R>(run: () => R): R {
    if (this.collected !== undefined) return run();
    this.collected = [];
    try {
      return run();
    } finally {
      this.flush();
      this.collected = undefined;
    }
  }

  /** To be called before a command that is not to overtake the releases. */
  flush(): void {
    if (this.collected === undefined || this.collected.length === 0) return;
    const { collected } = this;
    this.collected = [];
    for (const releases of this.groupsOf(collected)) {
      if (releases.length > 1) void this.leaveAll(releases);
      else for (const { request, resolve } of releases) resolve(this.leaveAlone(request));
    }
  }

  private collect(collected: Collected[], request: ReleaseRequest): Promise<ReleaseReply> {
    const released = this.releasing(request);
    return new Promise((resolve, reject) => {
      collected.push({ request, released, resolve, reject });
    });
  }

  /** Locks of one owner, lease and location. */
  private groupsOf(collected: readonly Collected[]): readonly (readonly Collected[])[] {
    const groups: { readonly place: number; readonly of: ReleaseRequest; readonly releases: Collected[] }[] =
      [];
    for (const release of collected) {
      const { owner, leaseTime, name } = release.request;
      const place = this.connection.groupOf(this.calls.keys(name).lock);
      // Mostly there is one, and it is found without making a text of what its members have in common.
      const group = groups.find(
        ({ place: other, of }) => other === place && of.owner === owner && of.leaseTime === leaseTime,
      );
      if (group === undefined) groups.push({ place, of: release.request, releases: [release] });
      else group.releases.push(release);
    }
    return groups.map(({ releases }) => releases);
  }

  /** Answers each of the releases, and never rejects. */
  private async leaveAll(releases: readonly Collected[]): Promise<void> {
    const requests = releases.map(({ request }) => request);
    const replies = await this.sendAll(requests).catch((error: unknown) =>
      requests.map(() => error as Error),
    );
    releases.forEach((release, index) => {
      this.settle(release, replies[index] ?? new UnexpectedReply(replies));
    });
  }

  private settle({ request, released, resolve, reject }: Collected, reply: ReleaseReply | Error): void {
    if (!(reply instanceof Error)) resolve(released(reply));
    // The refused command is known only for a script that is sent by itself.
    else if (isWithheld(reply)) resolve(this.leaveAlone(request));
    else reject(this.calls.translated(reply, request.name));
  }

  private async sendAll(requests: readonly ReleaseRequest[]): Promise<readonly (ReleaseReply | Error)[]> {
    const [first] = requests;
    const keys = requests.map(({ name }) => this.calls.keys(name));
    const { sharded } = this.connection;
    const reply = await this.connection.run(
      scripts.releaseAll,
      [...keys.map(({ lock }) => lock), ...keys.map(({ fence }) => fence), ...keys.map(({ queue }) => queue)],
      [
        first?.owner ?? '',
        sharded ? 'SPUBLISH' : 'PUBLISH',
        FENCE_TTL,
        first?.leaseTime ?? 0,
        this.calls.clusterArgument,
        ...(sharded ? keys.map(({ shardChannel }) => shardChannel) : []),
      ],
    );
    return releaseReplies(reply, requests.length);
  }

  private leaveAlone(request: ReleaseRequest): Promise<ReleaseReply> {
    return this.leave(request, undefined, this.readerOf(request));
  }

  /** Sends the release of a plain lock. */
  private leave<R>(
    { name, owner, fencingToken, keepFor = 0, leaseTime = 0, queue }: ReleaseRequest,
    next: NextOwner | undefined,
    read: (reply: unknown) => R,
  ): Promise<R> {
    const keys = this.calls.keys(name);
    const stood = queue === undefined ? '' : leaseTime;
    const [command, channel] = this.calls.publishing(keys);
    const args: Argument[] = [owner, command, channel, fencingToken ?? 0, FENCE_TTL];
    // An argument that is left out at the end costs client and server nothing.
    if (queue !== undefined || keepFor > 0 || next !== undefined || this.connection.isCluster)
      args.push(keepFor, stood);
    if (next !== undefined) args.push(next.owner, next.leaseTime, this.calls.clusterArgument);
    else if (this.connection.isCluster) args.push('', 0, this.calls.clusterArgument);
    const touched = queue === undefined ? [keys.lock, keys.fence] : keys.queued;
    const acquisition = next && { unwanted: false };
    return this.calls.run(scripts.release, touched, args, name, read, acquisition);
  }

  /** As `releasing`, for the code that a release script answers with. */
  private readerOf(request: ReleaseRequest): (reply: unknown) => ReleaseReply {
    const released = this.releasing(request);
    return (reply) => released(releaseReply(reply));
  }

  /** To be called before a release is sent. The returned function reads the answer. */
  private releasing({ name, owner }: ReleaseRequest): (reply: ReleaseReply) => ReleaseReply {
    const key = this.calls.keys(name).lock;
    const generation = this.connection.generationOf(key);
    this.acquiring.takeBack(owner);
    // "Not held" after a reconnection may be the answer to a release that the client has sent twice.
    return (reply) => (this.connection.generationOf(key) === generation ? reply : 'released');
  }
}

/** Whether the release of a plain lock may travel together with others: nothing but the lock is given up. */
const mayTravel = ({ queue, fencingToken, keepFor }: ReleaseRequest): boolean =>
  queue?.kind === 'lock' && fencingToken === undefined && keepFor === undefined;
