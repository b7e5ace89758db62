import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { type LockTraceContext, TRACING_CHANNELS } from '../api/tracing-channels.js';
import type { Recorder } from './recorder.js';

type Told = Exclude<keyof Recorder, 'stop'>;

/**
 * Passes published contexts to recorders. Nothing is thrown into the application: Node would end the process because of a
 * subscriber that throws.
 */
export class Recording {
  /** The calls and holds that have begun, and have not ended. Each ends. A WeakSet would be much work for the collector. */
  private readonly begun = new Set<LockTraceContext>();
  private ending = false;
  private readonly subscriptions: readonly (readonly [channel: string, handle: (message: unknown) => void])[];

  constructor(
    private readonly recorders: readonly Recorder[],
    /** Whether these recorders record the service with this id. */
    private readonly measures: (client: string) => boolean,
    private readonly onFailure: (error: unknown) => void,
  ) {
    const { acquire, hold } = TRACING_CHANNELS;
    this.subscriptions = [
      [`tracing:${acquire}:start`, this.starting('acquireStarted')],
      [`tracing:${acquire}:asyncEnd`, this.finishing('acquireEnded')],
      [`tracing:${hold}:start`, this.starting('holdStarted')],
      [`tracing:${hold}:asyncEnd`, this.finishing('holdEnded')],
    ];
    for (const [channel, handle] of this.subscriptions) subscribe(channel, handle);
  }

  /** Nothing new is recorded. Open spans are recorded to their end. */
  end(): void {
    if (this.ending) return;
    this.ending = true;
    this.stopIfIdle();
  }

  private starting(told: 'acquireStarted' | 'holdStarted') {
    return (message: unknown): void => {
      const context = message as LockTraceContext;
      if (this.ending || !this.isMeasured(context)) return;
      this.begun.add(context);
      this.tell(told, context);
    };
  }

  private finishing(told: 'acquireEnded' | 'holdEnded') {
    return (message: unknown): void => {
      const context = message as LockTraceContext;
      if (!this.begun.delete(context)) return;
      this.tell(told, context);
      if (this.ending) this.stopIfIdle();
    };
  }

  private isMeasured({ client }: LockTraceContext): boolean {
    try {
      return this.measures(client);
    } catch (error) {
      this.onFailure(error);
      return false;
    }
  }

  private tell(told: Told, context: LockTraceContext): void {
    for (const recorder of this.recorders) {
      try {
        // Each channel has contexts of one type.
        (recorder[told] as (context: LockTraceContext) => void).call(recorder, context);
      } catch (error) {
        this.onFailure(error);
      }
    }
  }

  private stopIfIdle(): void {
    if (this.begun.size > 0) return;
    for (const [channel, handle] of this.subscriptions) unsubscribe(channel, handle);
    for (const recorder of this.recorders) {
      try {
        recorder.stop?.();
      } catch (error) {
        this.onFailure(error);
      }
    }
  }
}
