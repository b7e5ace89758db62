import { randomUUID } from 'node:crypto';
import type { AcquireReply, AcquireRequest, LockStore, Subscription } from '../stores/lock-store.js';
import { Tenure, type TenureOrigin, type Terms } from './tenure.js';
import { type Busy, POLL, type WaitRequest } from './waiting.js';
import { type LineContext, type LineStore, WaitingLine } from './waiting-line.js';

/** So many refusals in a row are bad luck enough to reserve the turn. */
const PATIENCE = 10;
/** How long a turn is reserved, ms: longer than most holds, short where whoever has reserved it is gone. */
const RESERVATION = 250;

/**
 * Those of one process who want the same several plain locks of one place, all or none. They stand in a line as for
 * one lock; here its requests are translated, and it waits for whichever name is in the way. While it waits it holds
 * nothing, and it is never granted a part, so that no two of them can block each other.
 */
export class GroupLine implements LineStore {
  private readonly line: WaitingLine;
  private readonly asker = randomUUID();
  /** The name that was in the way the last time, and whoever has to hear of its release. */
  private busyName: string | undefined;
  private ear: Ear | undefined;
  /** Whose release has been sent last. */
  private takenBack: string | undefined;
  /** What the store has granted last. */
  private origin: TenureOrigin | undefined;
  /** In a row. */
  private refusals = 0;
  private fencingTokens: readonly number[] = [];

  constructor(
    readonly names: readonly string[],
    private readonly store: LockStore,
    context: LineContext,
    onIdle: (line: GroupLine) => void,
  ) {
    this.line = new WaitingLine(
      names.join(','),
      {
        ...context,
        store: this,
        releaser: {
          release: async ({ owner }, until, options) => {
            this.takenBack = owner;
            const releases = names.map((name) => context.releaser.release({ name, owner }, until, options));
            return (await Promise.all(releases)).every((released) => released);
          },
        },
        // Only for the moment in which it is split into the tenures of its members.
        open: (line, terms, origin) => this.openForAMoment(line, terms, origin),
      },
      () => {
        onIdle(this);
      },
    );
  }

  get length(): number {
    return this.line.length;
  }

  /**
   * As WaitingLine.join.
   * @returns for each name how it was granted, in order
   */
  async join(request: WaitRequest): Promise<readonly TenureOrigin[] | Busy> {
    const tenure = await this.line.join(request);
    const { origin } = this;
    if ('busy' in tenure || origin === undefined) return tenure as Busy;
    tenure.end();
    return this.fencingTokens.map((fencingToken) => ({ ...origin, fencingToken }));
  }

  close(): void {
    this.line.close();
  }

  async acquire({ owner, leaseTime }: AcquireRequest): Promise<AcquireReply> {
    const { names, asker } = this;
    for (;;) {
      const turn = { asker, reserveFor: this.refusals < PATIENCE ? 0 : RESERVATION };
      const reply = await this.store.acquireAll({ names, owner, leaseTime, turn });
      if (reply.granted) {
        this.refusals = 0;
        this.fencingTokens = reply.fencingTokens;
        return { granted: true, fencingToken: Math.max(...reply.fencingTokens) };
      }
      this.refusals++;
      this.busyName = reply.name;
      if (this.ear === undefined || this.ear.name === reply.name) return reply;
      // The line believes that it hears of the release, so it has to; and that may have come in between.
      if (!(await this.ear.follow(reply.name)))
        return { ...reply, retryAfter: Math.min(reply.retryAfter, POLL) };
      // Given up meanwhile: what came after the release would be taken for nobody.
      if (this.takenBack === owner) return reply;
    }
  }

  async subscribe(_: string, onWake: () => void): Promise<Subscription> {
    const ear = new Ear(this.store, onWake, () => {
      if (this.ear === ear) this.ear = undefined;
    });
    this.ear = ear;
    if (this.busyName !== undefined) await ear.follow(this.busyName);
    return ear;
  }

  private openForAMoment(line: WaitingLine, terms: Terms, origin: TenureOrigin): Tenure {
    this.origin = origin;
    return new Tenure(line.name, terms, origin, (tenure) => {
      line.ended(tenure);
    });
  }
}

/** Hears of the release of one name, which may change. */
class Ear implements Subscription {
  name: string | undefined;
  private inner: Subscription | undefined;
  /** How often it has been told a name. */
  private changes = 0;
  private closed = false;

  constructor(
    private readonly store: LockStore,
    private readonly onWake: () => void,
    private readonly onClose: () => void,
  ) {}

  get active(): boolean {
    return this.inner?.active === true;
  }

  /** @returns whether it can be heard now. */
  async follow(name: string): Promise<boolean> {
    const change = ++this.changes;
    this.name = name;
    this.inner?.close();
    this.inner = undefined;
    try {
      // A listener of its own each time, so that the end of one subscription is not that of the next.
      const inner = await this.store.subscribe(name, () => {
        this.onWake();
      });
      // Another name may have come meanwhile, and have been subscribed to sooner.
      if (this.closed || change !== this.changes) inner.close();
      else this.inner = inner;
    } catch {
      if (change === this.changes) this.name = undefined; // to be tried again
    }
    return this.active;
  }

  close(): void {
    this.closed = true;
    this.inner?.close();
    this.onClose();
  }
}
