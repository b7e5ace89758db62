import type { Logger } from '@nestjs/common';
import { now } from '../runtime/clock.js';
import type { LockUnavailableError } from '../api/errors.js';
import { clearTimer, idle, setTimer } from '../runtime/runtime.js';
import { inQuotes, onOneLine } from '../runtime/text.js';

/** ms without such an error, after which an outage has ended. A caller may wait for 10 s before it has one. */
const CALM = 30_000;

/** Logs one line when locks become unavailable, and one with the number of calls that had no lock when the outage has ended. */
export class OutageLog {
  private calls = 0;
  private since = 0;
  private last = 0;
  private calm: NodeJS.Timeout | undefined;

  constructor(private readonly logger: Logger) {}

  add(error: LockUnavailableError): void {
    this.last = now();
    if (this.calls++ === 0) {
      this.since = this.last;
      const where = error.key === undefined ? '' : ` for "${inQuotes(error.key)}"`;
      this.logger.error(`Locks are unavailable, first${where}: ${onOneLine(reasonOf(error))}`);
    }
    clearTimer(this.calm);
    this.calm = idle(
      setTimer(() => {
        this.end();
      }, CALM),
    );
  }

  private end(): void {
    const seconds = ((this.last - this.since) / 1_000).toFixed(1);
    if (this.calls > 1)
      this.logger.log(`Locks were unavailable to ${String(this.calls)} calls within ${seconds} s`);
    this.calls = 0;
  }
}

/** The chain of causes. */
function reasonOf({ cause, message }: Error): string {
  const texts: string[] = [];
  for (let error = cause; error instanceof Error && texts.length < 3; error = error.cause)
    texts.push(error.message);
  return texts.join(': ') || message;
}
