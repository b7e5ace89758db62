import type { LockEvent } from '../../api/events.js';
import { now } from '../../client/holding/deadline.js';
import { Durations, MINUTES } from './durations.js';
import type { BoardGroup } from './wire.js';

/** Of how many groups the times are kept, and the labels of how many forms of names. */
const MOST = 200;
/** Fewer times than this say nothing of the usual one. */
const FEWEST = 3;
/** The labels of locks without a label of their own. */
const KINDS = new Set(['lock', 'fair', 'read', 'write', 'semaphore', 'multi', 'election']);

/**
 * Puts locks together by the label under which this process asks for names of the same form, or else by that form, and keeps how long
 * their callers wait and hold. Locks of other processes have no label in the store.
 */
export class Groups {
  /** By form; of one that has several labels none. */
  private readonly labels = new Map<string, string | undefined>();
  /** `seen` are the holds of other processes, as two looks at the store show them. */
  private readonly times = new Map<string, Record<'wait' | 'hold' | 'seen', Durations>>();
  private readonly begunAt = now();

  told(event: LockEvent): void {
    if (event.type === 'acquired') {
      this.learn(formOf(event.name), event.label);
      this.add('wait', event.name, event.waited);
    } else if (event.type === 'released') this.add('hold', event.name, event.heldFor);
  }

  /** A hold was there at one look, and not at the next one. */
  sawEnd(name: string, heldFor: number): void {
    this.add('seen', name, heldFor);
  }

  groupOf(name: string): string {
    const form = formOf(name);
    return this.labels.get(form) ?? form;
  }

  /** All of which something is known. Others are forgotten. */
  all(): BoardGroup[] {
    const at = now();
    const minutes = Math.min(MINUTES, Math.max(1, (at - this.begunAt) / 60_000));
    return [...this.times].flatMap(([name, times]) => {
      const [wait, own, seen] = [times.wait.summary(at), times.hold.summary(at), times.seen.summary(at)];
      if (wait.count + own.count + seen.count === 0) {
        this.times.delete(name);
        return [];
      }
      const isSeen = own.count < FEWEST;
      const hold = isSeen ? seen : own;
      const rate = wait.count === 0 ? null : Number((wait.count / minutes).toPrecision(2));
      const known = ({ count, times }: typeof wait) => (count < FEWEST ? null : times);
      return [{ name, rate, wait: known(wait), hold: known(hold), isSeen }];
    });
  }

  private learn(form: string, label: string): void {
    if (KINDS.has(label) || this.labels.get(form) === label) return;
    if (this.labels.has(form)) this.labels.set(form, undefined);
    else if (this.labels.size < MOST) this.labels.set(form, label);
  }

  private add(what: 'wait' | 'hold' | 'seen', name: string, duration: number): void {
    const group = this.groupOf(name);
    let times = this.times.get(group);
    if (times === undefined && this.times.size >= MOST) this.all();
    if (times === undefined && this.times.size < MOST) {
      times = { wait: new Durations(), hold: new Durations(), seen: new Durations() };
      this.times.set(group, times);
    }
    times?.[what].add(duration, now());
  }
}

/** The name without what differs between its like: numbers, and the last part of several. */
const formOf = (name: string): string =>
  name
    .slice(0, 200)
    .replace(/[\da-f]{8}-[\da-f-]{27}/gi, '*')
    .replace(/\d[^:/]*/g, '*')
    .replace(/([:/])[^:/]*$/, '$1*');
