import {
  type Attributes,
  type Context,
  context as active,
  isSpanContextValid,
  type Link,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type Tracer,
} from '@opentelemetry/api';
import { isLockError } from '../api/errors.js';
import type { LockAcquireContext, LockHoldContext, LockTraceContext } from '../api/tracing-channels.js';
import { ATTRIBUTES, attributesOf, leaseOf, seconds } from './attributes.js';
import { HoldSpans } from './hold-spans.js';
import type { Recorder } from './recorder.js';

/** A span `lock.acquire` for each call, and a span `lock.hold` for each hold. */
export class LockSpans implements Recorder {
  /** Of calls that have no answer yet. Their holds begin before it. */
  private readonly acquisitions = new Map<
    LockAcquireContext,
    { readonly span: Span; readonly parent: Context }
  >();
  private readonly holds = new HoldSpans();

  constructor(
    private readonly tracer: Tracer,
    private readonly includeNames: boolean,
  ) {}

  acquireStarted(acquisition: LockAcquireContext): void {
    const parent = active.active();
    this.acquisitions.set(acquisition, { span: this.start('lock.acquire', acquisition, parent), parent });
  }

  acquireEnded(acquisition: LockAcquireContext): void {
    const span = this.acquisitions.get(acquisition)?.span;
    if (span === undefined) return;
    this.acquisitions.delete(acquisition);
    const { outcome, reason, waited = 0, attempts, commands, fencingToken, holder, error } = acquisition;
    try {
      span.setAttributes(
        present({
          [ATTRIBUTES.outcome]: outcome,
          [ATTRIBUTES.reason]: reason,
          [ATTRIBUTES.waited]: seconds(waited),
          [ATTRIBUTES.attempts]: attempts,
          [ATTRIBUTES.commands]: commands,
          [ATTRIBUTES.fencingToken]: fencingToken,
          [ATTRIBUTES.holder]: holder,
        }),
      );
      // The caller of an aborted call does not want the lock any more, and a `tryAcquire` asks whether it is free.
      if (error !== undefined && outcome !== 'aborted') this.fail(span, error);
      const inTheWay = holder && this.holds.inTheWayOf(acquisition, holder);
      // An older SDK has no later links.
      if (inTheWay) span.addLink(inTheWay);
    } finally {
      span.end();
    }
  }

  holdStarted(hold: LockHoldContext): void {
    const { owner, fencingToken, handedOver, acquisition } = hold;
    const acquired = acquisition && this.acquisitions.get(acquisition);
    const links = acquired === undefined ? [] : linksTo(acquired.span.spanContext());
    const begunAt = Date.now();
    const span = this.start('lock.hold', hold, acquired?.parent ?? active.active(), links, begunAt);
    span.setAttributes(
      present({
        [ATTRIBUTES.owner]: owner,
        [ATTRIBUTES.fencingToken]: fencingToken,
        [ATTRIBUTES.handover]: handedOver,
        [ATTRIBUTES.lease]: leaseOf(hold),
      }),
    );
    this.holds.begun(hold, span, begunAt);
  }

  holdEnded(hold: LockHoldContext): void {
    const ended = this.holds.ended(hold);
    if (ended === undefined) return;
    const { span, begunAt } = ended;
    const { outcome, reason, heldFor = 0, renewed, error } = hold;
    span.setAttributes(
      present({
        [ATTRIBUTES.outcome]: outcome,
        [ATTRIBUTES.reason]: reason,
        [ATTRIBUTES.held]: seconds(heldFor),
      }),
    );
    // A fixed lease ends when its caller has said.
    if (error !== undefined && (renewed || reason !== 'expired')) this.fail(span, error);
    // The answer to a release comes later, and the next holder may have begun by then.
    span.end(begunAt + heldFor);
  }

  private start(
    title: string,
    of: LockTraceContext,
    parent: Context,
    links: Link[] = [],
    startTime = Date.now(),
  ): Span {
    const attributes = attributesOf(of);
    if (this.includeNames) attributes[ATTRIBUTES.name] = of.name;
    return this.tracer.startSpan(title, { kind: SpanKind.INTERNAL, attributes, links, startTime }, parent);
  }

  /** The message of an error has the name of its lock. */
  private fail(span: Span, error: unknown): void {
    const code = isLockError(error) ? error.code : '_OTHER';
    const message = this.includeNames && error instanceof Error ? error.message : code;
    span.setAttribute(ATTRIBUTES.error, code);
    span.setStatus({ code: SpanStatusCode.ERROR, message });
  }
}

const linksTo = (context: SpanContext): Link[] => (isSpanContextValid(context) ? [{ context }] : []);

function present(attributes: Record<string, string | number | undefined>): Attributes {
  const given: Attributes = {};
  for (const name in attributes) {
    const value = attributes[name];
    if (value !== undefined) given[name] = value;
  }
  return given;
}
