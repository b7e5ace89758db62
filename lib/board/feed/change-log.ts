import type { LockEvent } from '../../api/events.js';
import { isUnusual } from '../../client/event-stream.js';
import { logEvent } from '../../module/event-log.js';
import { MOST_CHANGES, type BoardChange } from './wire.js';

/** How long the text of one may be: a message of a server may be long. */
const LONGEST = 500;

/** The last changes, the newest last. */
export class ChangeLog {
  private lastId = 0;
  /** Another list after each change. */
  all: readonly BoardChange[] = [];

  add(...changes: readonly Omit<BoardChange, 'id'>[]): void {
    const added = changes.map(({ text, ...change }) => {
      const shown = text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
      return { ...change, text: shown, id: ++this.lastId };
    });
    this.all = [...this.all, ...added].slice(-MOST_CHANGES);
  }

  /** An event of this process, in the words of its log. The others are seen in the store anyway. */
  told(event: LockEvent): void {
    const { type } = event;
    const name = 'name' in event ? event.name : '';
    const add = (tone: BoardChange['tone']) => (text: string) => {
      this.add({ at: Date.now(), type: type.replaceAll('-', ' '), tone, name, text });
    };
    if (type === 'timed-out')
      add('note')(
        `after ${(event.waited / 1_000).toFixed(1)} s, held by ${event.holderLabel ?? event.holder ?? 'no process known'}`,
      );
    else if (isUnusual(event))
      logEvent({ log: add('calm'), warn: add('note'), error: add('bad') }, event, false);
  }
}
