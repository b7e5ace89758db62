import { isSpanContextValid, type Link, type Span, type SpanContext } from '@opentelemetry/api';
import type { LockAcquireContext, LockHoldContext } from '../api/tracing-channels.js';

/** How many holds that have ended are remembered: a caller that waited for one gets its answer a moment later. */
const MOST_ENDED = 1_000;

/** The holds of one owner under one name. Holders that hand a lock off to each other have one owner. */
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
  /** By owner and name: the locks of a multi-lock have one owner. */
  private readonly open = new Map<string, OwnersHold>();
  private readonly over = new Map<string, OwnersHold>();

  begun(hold: LockHoldContext, span: Span, begunAt: number): void {
    const { owner, name, acquisition } = hold;
    this.spans.set(hold, { span, begunAt });
    const key = keyOf(owner, name);
    // A hold ends before the next one of its owner begins.
    const before = this.over.get(key)?.context;
    this.open.set(key, { acquisition, context: span.spanContext(), before });
  }

  ended(hold: LockHoldContext): HoldSpan | undefined {
    const ended = this.spans.get(hold);
    if (ended === undefined) return undefined;
    this.spans.delete(hold);
    const key = keyOf(hold.owner, hold.name);
    const last = this.open.get(key);
    if (last === undefined) return ended;
    this.open.delete(key);
    this.over.delete(key);
    this.over.set(key, last);
    if (this.over.size > MOST_ENDED) this.forgetOldest();
    return ended;
  }

  /** The hold that a caller has waited for, if it was of this process. */
  inTheWayOf(acquisition: LockAcquireContext, holder: string): Link | undefined {
    const { kind, name } = acquisition;
    const keys = (kind === 'multi' ? name.split(',') : [name]).map((each) => keyOf(holder, each));
    const held = keys.find((key) => this.open.has(key)) ?? keys.find((key) => this.over.has(key)) ?? '';
    const last = this.open.get(held) ?? this.over.get(held);
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

const keyOf = (owner: string, name: string): string => `${owner} ${name}`;
