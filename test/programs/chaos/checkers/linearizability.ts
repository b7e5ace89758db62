import {
  type Attempt,
  byLock,
  deadlineOf,
  type FaultInterval,
  type History,
  holdsOf,
  type Violation,
} from '../history.js';
import { Losses } from './losses.js';
import { busy, extension, FREE, grant, keyOf, type LockOperation, reenter, release } from './model.js';
import { unexplained } from './search.js';

/** ms for which an attempt of unknown outcome may hold the lock after its lease: the part that is not promised. */
const SLACK = 1_000;

/**
 * (d) What acquire, tryAcquire, release and extend returned could have been returned by a lock that carries out one
 * operation at a time. An attempt whose outcome nobody knows may have taken the lock, and so explains that another
 * found it taken; so may a hold that the store has forgotten, who stands in a queue: its turn may have come unheard, and,
 * over several nodes, who waits while faults strike, or soon after.
 */
export function linearizability(history: History): Violation[] {
  const losses = new Losses(history);
  const found: Violation[] = [];
  for (const [lock, attempts] of byLock(history.attempts)) {
    const operations = operationsOf(attempts, history, losses);
    const culprit = unexplained(operations, FREE, keyOf);
    if (culprit === undefined) continue;
    const { attempt, what, returned } = culprit;
    const message = `${lock}: ${attempt.process}#${String(attempt.op)} ${what}, which no order of the operations explains`;
    found.push({ checker: 'linearizability', at: returned, message });
  }
  return found;
}

function operationsOf(attempts: readonly Attempt[], history: History, losses: Losses): LockOperation[] {
  const operations: LockOperation[] = [];
  const open = attempts.filter((attempt) => isOpen(attempt) || losses.of(attempt) !== undefined).map(spanOf);
  const mayBeTaken = (attempt: Attempt, from: number, to: number) =>
    open.some((span) => span.from < to && span.to > from) ||
    losses.unclear(attempt.lock, to, attempt.leaseTime) ||
    attempts.some(
      (other) =>
        other !== attempt &&
        other.invoked < to &&
        (other.answered ?? Infinity) > from &&
        (history.queues ? stands(other) : isStruck(other, history.faults)),
    );
  const ids = new Map(attempts.map((attempt, index) => [`${attempt.process} ${String(attempt.op)}`, index]));
  for (const attempt of attempts) {
    const { process, op, outer, granted, answered, refusal, releaseFrom, lost } = attempt;
    // The store knows less of it than its holder.
    if (losses.of(attempt) !== undefined || (outer !== undefined && attempt.kind === 'read-write')) continue;
    const outerId = outer === undefined ? undefined : ids.get(`${process} ${String(outer)}`);
    const outerHold = attempts[outerId ?? -1];
    if (outerHold !== undefined && losses.of(outerHold) !== undefined) continue;
    const id = outerId ?? ids.get(`${process} ${String(op)}`) ?? -1;
    if (granted !== undefined) {
      const [hold] = holdsOf([attempt]);
      const end = releaseOf(attempt, history.faults);
      // Where the lease was over when its process came to look, nobody knows since when.
      const deadline = deadlineOf(attempt) > granted ? deadlineOf(attempt) : attempt.invoked;
      // A release of unknown outcome may have been carried out at any time since, or never. And a restart of one node of
      // several, which forgets no hold of the others, may end a hold that only just had a majority.
      const until = Math.min(deadline, releaseFrom ?? Infinity, lost ?? Infinity);
      operations.push(
        outerId === undefined
          ? grant(id, hold!, end === undefined ? until : deadline)
          : reenter(id, { ...attempt, granted }),
      );
      if (end !== undefined) operations.push(release(id, attempt, end));
    } else if (refusal === 'busy' && answered !== undefined) {
      operations.push(busy({ ...attempt, answered }, mayBeTaken(attempt, attempt.invoked, answered)));
    }
    for (const { from, to, outcome } of attempt.extensions) {
      if (to !== undefined && outcome !== 'unknown' && outcome !== undefined)
        operations.push(extension(id, attempt, { from, to, held: outcome === 'ok' }));
    }
  }
  return operations;
}

/**
 * The release, if the store has certainly been told of it when it returned. It may keep what was lost here until the
 * lease is over there.
 */
function releaseOf(
  { process, call, lost, releaseFrom, releaseTo }: Attempt,
  faults: readonly FaultInterval[],
) {
  if (releaseFrom === undefined || releaseTo === undefined || lost !== undefined) return undefined;
  const hidden = faults.some(
    (fault) =>
      fault.severity !== 'harmless' &&
      (fault.process ?? process) === process &&
      fault.from < releaseTo &&
      fault.to + SLACK > releaseFrom,
  );
  return hidden && call !== 'nested' ? undefined : { from: releaseFrom, to: releaseTo };
}

/** A caller that does not wait for a plain lock has no place. */
const stands = ({ kind, call }: Attempt) => kind !== 'lock' || call === 'acquire';

/**
 * Over several nodes, a majority may have granted it, of which one stopped before it told that it may vote, or may not vote
 * for a lease after its restart: then all of them take it back, and its caller goes on to wait.
 */
const isStruck = ({ invoked, answered, leaseTime }: Attempt, faults: readonly FaultInterval[]) =>
  faults.some(
    ({ severity, from, to }) =>
      severity !== 'harmless' && from < (answered ?? Infinity) && to + leaseTime + SLACK > invoked,
  );

/** Nobody knows whether the store has granted it: it was never answered, or with an error. */
const isOpen = ({ granted, refusal }: Attempt) => granted === undefined && refusal !== 'busy';

const spanOf = (attempt: Attempt) => ({
  from: attempt.invoked,
  to: Math.max(attempt.answered ?? attempt.invoked, deadlineOf(attempt)) + attempt.leaseTime + SLACK,
});
