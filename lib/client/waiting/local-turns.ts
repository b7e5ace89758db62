import { atEndOfTurn } from '../../runtime/runtime.js';
import type { ReleaseReply } from '../../store/lock-store.js';
import { HoldLook, type LookAnswer } from '../holding/hold-look.js';
import type { Tenure } from '../holding/tenure.js';
import type { LockClient } from '../lock-client.js';
import { mayHandOff } from './hand-off.js';
import type { Waiter } from './waiter.js';
import { Waiters } from './waiters.js';

/** The callers of one process that use a hold of the lock one after another. */
export abstract class LocalTurns extends Waiters {
  /** The hold of this process. */
  protected tenure: Tenure | undefined;
  /** Asks the store about the hold. Made with the first question: most holds end without one. */
  private look: HoldLook | undefined;
  /** The number of questions about holds. */
  protected looks = 0;
  /** Whether several callers have recently wanted the lock at once. */
  private shared = false;

  constructor(readonly client: LockClient) {
    super();
  }

  /** Whether each caller has a hold of its own. */
  protected abstract readonly isByArrival: boolean;

  /** Ensures that every waiter has a request, a question or a hold that it waits for. */
  protected abstract goOn(): void;

  /** Releases the hold in the store. @returns as Releaser.release */
  protected abstract giveUp(tenure: Tenure): Promise<ReleaseReply | undefined>;

  /** Called after a hand-off to the last waiter. */
  protected abstract allServed(): void;

  protected override add(waiter: Waiter): void {
    this.shared ||= this.length > 0 || this.tenure !== undefined;
    super.add(waiter);
  }

  /** Takes a new hold of the lock. */
  adopt(tenure: Tenure): void {
    if (this.isByArrival) return;
    this.tenure = tenure;
    this.look?.ended();
  }

  ended(tenure: Tenure): void {
    if (this.tenure !== tenure) return;
    this.tenure = undefined;
    this.look?.ended();
    this.goOn();
  }

  /**
   * Gives the tenure to the next waiter without a command, or releases it in the store.
   * @returns as Releaser.release
   */
  release(tenure: Tenure): Promise<ReleaseReply | undefined> {
    // If the queue has a newer tenure, the release of the older one does not decide which caller is next.
    if (this.tenure !== tenure) return this.client.returns.giveBack(tenure);
    if (tenure.keepFor !== undefined) return this.giveUp(tenure);
    if (this.handOff(tenure)) return Promise.resolve('released');
    if (!this.mayBeWantedSoon(tenure)) return this.giveUp(tenure);
    return this.handOffSoon(tenure).then((isOver) => (isOver ? 'released' : this.giveUp(tenure)));
  }

  /** Asks the store about the hold, for all callers that want an answer now. */
  protected lookAt(tenure: Tenure): void {
    void this.looking.lookAt(tenure);
  }

  /** A message says that the lock was released, which may mean the hold of this process. */
  protected doubt(): void {
    if (this.tenure !== undefined) this.looking.doubt(this.tenure);
  }

  /** The moment of the question under way about the hold. */
  protected get lookedAt(): number | undefined {
    return this.look?.asking?.sentAt;
  }

  private handOff(tenure: Tenure, user = tenure.user): boolean {
    const { head } = this;
    if (head === undefined || !mayHandOff(tenure, head.terms, this.client.options.localHandoff)) return false;
    if (tenure.user !== undefined) head.waitsFor(tenure.owner);
    tenure.user = undefined;
    // The present holder was asked for the release, and it has released.
    tenure.asker = undefined;
    tenure.handoffs++;
    tenure.fencingToken++;
    head.grant(this.client.begin(tenure));
    // Called before the next owner continues, which waits for the promise of its grant.
    user?.onHandedOff();
    if (this.length === 0) this.allServed();
    return true;
  }

  private mayBeWantedSoon(tenure: Tenure): boolean {
    return (
      this.shared &&
      this.head === undefined &&
      mayHandOff(tenure, tenure.terms, this.client.options.localHandoff)
    );
  }

  /**
   * Waits for callers that come back at once: they arrive only after the promises of their release have settled.
   * @returns whether nothing is left to release
   */
  private async handOffSoon(tenure: Tenure): Promise<boolean> {
    const { user } = tenure;
    tenure.user = undefined;
    await new Promise<void>((resolve) => {
      atEndOfTurn(resolve);
    });
    this.shared = this.length > 0;
    return !tenure.held || this.handOff(tenure, user);
  }

  private get looking(): HoldLook {
    const look = (tenure: Tenure) => {
      this.looks++;
      return this.client.look(tenure);
    };
    return (this.look ??= new HoldLook(look, (tenure, sentAt, answer) => {
      this.looked(tenure, sentAt, answer);
    }));
  }

  private looked(tenure: Tenure, sentAt: number, answer: LookAnswer): void {
    if (this.tenure === tenure && tenure.held) this.refuseImpatient(sentAt, answer);
    // If another hold has replaced that one, the callers need an answer about the new hold.
    this.goOn();
  }
}
