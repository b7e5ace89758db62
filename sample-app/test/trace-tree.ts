import type { ReadableSpan, Span, SpanProcessor } from '@opentelemetry/sdk-trace-base';

interface Recorded {
  readonly span: ReadableSpan;
  readonly start: number;
  end: number;
}

interface Line {
  readonly title: string;
  readonly recorded: Recorded;
}

/** Draws spans in the order in which they start and end: clocks of spans are too coarse to tell which came first. */
export class TraceTree implements SpanProcessor {
  private readonly recorded = new Map<string, Recorded>();
  private steps = 0;

  onStart(span: Span): void {
    this.recorded.set(idOf(span), { span, start: this.steps++, end: Infinity });
  }

  onEnd(span: ReadableSpan): void {
    const recorded = this.recorded.get(idOf(span));
    if (recorded !== undefined) recorded.end = this.steps++;
  }

  /** How many spans of that name have ended. */
  ended(name: string): number {
    return [...this.recorded.values()].filter(({ span, end }) => span.name === name && end < Infinity).length;
  }

  /** A line for each span: its place in the tree, when it runs, its outcome, and the span that it waited for. */
  draw(): string {
    const lines = this.below(undefined, '', true);
    const width = Math.max(...lines.map(({ title }) => title.length)) + 2;
    const awaited = [...new Set(lines.flatMap(({ recorded: { span } }) => waitedFor(span)))];
    const number = (id: string) => `(${String(awaited.indexOf(id) + 1)})`;
    return lines
      .map(({ title, recorded: { span, start, end } }) => {
        const bar = ' '.repeat(start) + '━'.repeat(end - start + 1);
        const { 'lock.outcome': outcome = '' } = span.attributes;
        const notes = [
          String(outcome),
          ...waitedFor(span).map((id) => `after a wait for ${number(id)}`),
          ...(awaited.includes(idOf(span)) ? [number(idOf(span))] : []),
        ];
        return `${title.padEnd(width)}${bar.padEnd(this.steps + 2)}${notes.join(' ')}`.trimEnd();
      })
      .join('\n');
  }

  private below(parent: string | undefined, indent: string, isRoot = false): Line[] {
    const children = [...this.recorded.values()].filter(
      ({ span }) => span.parentSpanContext?.spanId === parent,
    );
    return children.flatMap((recorded, index) => {
      const isLast = index === children.length - 1;
      const [branch, further] = isRoot ? ['', ''] : isLast ? ['└─ ', '   '] : ['├─ ', '│  '];
      const title = `${indent}${branch}${recorded.span.name}`;
      return [{ title, recorded }, ...this.below(idOf(recorded.span), indent + further)];
    });
  }

  forceFlush(): Promise<void> {
    return Promise.resolve();
  }

  shutdown(): Promise<void> {
    return Promise.resolve();
  }
}

const idOf = (span: Pick<ReadableSpan, 'spanContext'>): string => span.spanContext().spanId;

/** A wait is linked to the hold that was in the way. */
const waitedFor = (span: ReadableSpan): string[] =>
  span.name === 'lock.acquire' ? span.links.map(({ context }) => context.spanId) : [];
