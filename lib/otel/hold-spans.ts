import { isSpanContextValid, type Link, type Span, type SpanContext } from '@opentelemetry/api';
import type { LockAcquireContext, LockHoldContext } from '../lock.tracing.js';

/** How many holds that have ended are remembered: a caller that waited for one gets its answer a moment later. */
const MOST_ENDED = 1_000;

/** A hold of an owner. Holders that hand a lock off to each other have one owner. */
interface OwnersHold {
  readonly acquisition: LockAcquireContext | undefined;
  readonly context: SpanContext;
  /** Of the hold that was handed off to this one. */
  readonly before: SpanContext | undefined;
}

interface HoldSpan {
  readonly span: Span;
  /** ms since the epoch */
  readonly begunAt: number;
}

/** The spans of holds, and which of them was in the way of a caller. */
export class HoldSpans {
  private readonly spans = new Map<LockHoldContext, HoldSpan>();
  private readonly open = new Map<string, OwnersHold>();
  private readonly over = new Map<string, OwnersHold>();

  begun(hold: LockHoldContext, span: Span, begunAt: number): void {
    const { owner, acquisition } = hold;
    this.spans.set(hold, { span, begunAt });
    // A hold ends before the next one of its owner begins.
    const before = this.over.get(owner)?.context;
    this.open.set(owner, { acquisition, context: span.spanContext(), before });
  }

  ended(hold: LockHoldContext): HoldSpan | undefined {
    const ended = this.spans.get(hold);
    if (ended === undefined) return undefined;
    this.spans.delete(hold);
    const { owner } = hold;
    const last = this.open.get(owner);
    if (last === undefined) return ended;
    this.open.delete(owner);
    this.over.delete(owner);
    this.over.set(owner, last);
    if (this.over.size > MOST_ENDED) this.forgetOldest();
    return ended;
  }

  /** The hold that a caller has waited for, where it was of this process. */
  inTheWayOf(acquisition: LockAcquireContext, holder: string): Link | undefined {
    const last = this.open.get(holder) ?? this.over.get(holder);
    const context = last?.acquisition === acquisition ? last.before : last?.context;
    return context !== undefined && isSpanContextValid(context) ? { context } : undefined;
  }

  private forgetOldest(): void {
    for (const oldest of this.over.keys()) {
      this.over.delete(oldest);
      return;
    }
  }
}
