import type { LockEvent } from '../../api/events.js';
import { describeCycle } from '../../api/deadlock.js';
import type { Change } from '../feed/difference.js';
import { failureOf } from '../feed/failure.js';

/** An event of this process for the page; undefined for events that the changes of the store show anyway. */
export function changeOf(event: LockEvent): Change | undefined {
  const at = Date.now();
  const { type } = event;
  switch (type) {
    case 'acquired':
    case 'handed-over':
    case 'released':
      return undefined;
    case 'lost':
      return { at, type, name: event.name, text: event.reason };
    case 'timed-out':
      return { at, type, name: event.name, text: afterWait(event.waited, event.holderLabel ?? event.holder) };
    case 'waiting-long':
      return { at, type, name: event.name, text: afterWait(event.waited, event.holderLabel ?? event.holder) };
    case 'held-long':
      return { at, type, name: event.name, text: `for ${seconds(event.heldFor)}` };
    case 'lock-order':
      return { at, type, name: event.name, text: `asked for under ${event.heldName}` };
    case 'deadlock':
      return { at, type, name: event.name, text: describeCycle(event.cycle) };
    case 'release-requested':
      return { at, type, name: event.name, text: because(askedText(event), event.reason) };
    case 'release-request-sent':
      return { at, type, name: event.name, text: because(holdersText(event.holders), event.reason) };
    case 'force-released':
      return { at, type, name: event.name, text: event.reason ?? '' };
    case 'renewal-failed':
      return { at, type, name: listOf(event.names), text: failureOf(event.error) };
    case 'release-failed':
      return { at, type, name: event.name, text: failureOf(event.error) };
    case 'warning':
      return { at, type, name: '', text: event.message };
    case 'disconnected':
    case 'reconnected':
      return { at, type, name: '', text: event.node };
    default:
      return undefined;
  }
}

const seconds = (time: number): string => `${(time / 1_000).toFixed(1)} s`;
const afterWait = (waited: number, holder: string | undefined): string =>
  `after ${seconds(waited)}${holder === undefined ? '' : `, held by ${holder}`}`;
const because = (text: string, reason: string | undefined): string =>
  reason === undefined ? text : `${text}: ${reason}`;
const askedText = ({ by, holders }: { by: string; holders: number }): string =>
  holders > 1 ? `by ${by}, ${holdersText(holders)} here` : `by ${by}`;
const holdersText = (count: number): string => `${String(count)} ${count === 1 ? 'holder' : 'holders'}`;
const listOf = (names: readonly string[]): string =>
  names.length > 3
    ? `${names.slice(0, 3).join(', ')} and ${String(names.length - 3)} more`
    : names.join(', ');
