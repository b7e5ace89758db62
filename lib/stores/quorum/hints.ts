import type { Asker } from '../../api/asker.js';
import { clearTimer, setTimer } from '../../runtime/runtime.js';
import { quorumOf } from './member.js';

/** ms within which the messages of one forced release arrive. */
const APART = 20;

/**
 * Makes one hint of the messages of several members about one owner. The message that completes a majority triggers the
 * hint. An earlier hint would make the client ask while a majority still holds the lock, and the client would give the
 * lock back to the members that have released it. If no majority follows, the hint comes after APART, because the other
 * messages may be lost.
 */
export class Hints {
  /** By owner. */
  private readonly hints = new Map<
    string,
    { readonly members: Set<number>; readonly timer: NodeJS.Timeout; readonly forced: Asker | undefined }
  >();

  constructor(
    private readonly members: number,
    private readonly onHint: (owner: string, forced: Asker | undefined) => void,
  ) {}

  add(member: number, owner: string, forced?: Asker): void {
    let hint = this.hints.get(owner);
    if (hint === undefined) {
      const members = new Set<number>();
      const timer = setTimer(() => {
        this.hints.delete(owner);
        if (members.size < quorumOf(this.members)) this.onHint(owner, forced);
      }, APART);
      hint = { members, timer, forced };
      this.hints.set(owner, hint);
    }
    const before = hint.members.size;
    hint.members.add(member);
    if (before < hint.members.size && hint.members.size === quorumOf(this.members))
      this.onHint(owner, hint.forced);
  }

  close(): void {
    for (const { timer } of this.hints.values()) clearTimer(timer);
    this.hints.clear();
  }
}
