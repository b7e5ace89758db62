import { afterInput, clearTimer, setTimer } from '../../runtime/runtime.js';
import { type Member, quorumOf } from './member.js';
import type { Quorum } from './quorum.js';

/** ms for which a result that needs no further answers waits for them. A member that takes longer is silent. */
const GRACE = 100;

export type Answer<A> = { readonly value: A } | { readonly error: unknown };

/** By member; undefined for a member without an answer. */
export type Answers<A> = readonly (Answer<A> | undefined)[];

/**
 * - decided: no further answer can change the result.
 * - enough: there is a result without the members that are absent. The others get GRACE to answer.
 */
export type Verdict = 'decided' | 'enough' | 'open';

type Rule<A> = (answers: Answers<A>) => Verdict;

export class Ballot<A> {
  readonly answers: (Answer<A> | undefined)[];
  asked = 0;
  private readonly missing = new Set<number>();
  private wait: { readonly rule: Rule<A>; readonly resolve: (answers: Answers<A>) => void } | undefined;
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly quorum: Quorum) {
    this.answers = quorum.members.map(() => undefined);
  }

  /** Counts a member in. `settle` must follow. */
  ask(index: number): void {
    this.asked++;
    this.missing.add(index);
  }

  settle(index: number, answer: Answer<A>): void {
    this.quorum.note(index, answer);
    this.answers[index] = answer;
    this.missing.delete(index);
    this.consider();
  }

  async enter(index: number, answer: Promise<A>): Promise<void> {
    this.ask(index);
    try {
      this.settle(index, { value: await answer });
    } catch (error) {
      this.settle(index, { error });
    }
  }

  /** Waits until the rule has decided, or all members asked have answered. */
  until(rule: Rule<A>): Promise<Answers<A>> {
    return new Promise((resolve) => {
      this.wait = { rule, resolve };
      this.consider();
    });
  }

  private consider(): void {
    if (this.wait === undefined) return;
    const verdict = this.missing.size === 0 ? 'decided' : this.wait.rule(this.answers);
    if (verdict === 'open') return;
    if (verdict === 'decided' || [...this.missing].every((index) => this.quorum.isAbsent(index))) this.end();
    // After a busy moment of this process, timers run before answers that have already arrived.
    else
      this.timer ??= setTimer(() => {
        afterInput(this.loseLate);
      }, GRACE);
  }

  private readonly loseLate = (): void => {
    if (this.wait === undefined || this.timer === undefined) return;
    for (const index of this.missing) this.quorum.silent.add(index);
    this.end();
  };

  private end(): void {
    clearTimer(this.timer);
    this.timer = undefined;
    this.wait?.resolve(this.answers);
    this.wait = undefined;
  }
}

/** Asks all members at once, or those for which `ask` returns a promise. By default, a majority is enough. */
export function gather<A>(
  quorum: Quorum,
  ask: (member: Member, index: number) => Promise<A> | undefined,
  rule: Rule<A> = (answers) => (isMajority(answers) ? 'enough' : 'open'),
): Promise<Answers<A>> {
  const ballot = new Ballot<A>(quorum);
  quorum.members.forEach((member, index) => {
    const answer = ask(member, index);
    if (answer !== undefined) void ballot.enter(index, answer);
  });
  return ballot.until(rule);
}

/** The values of the members that have answered with one. A loop, because each acquisition comes here often. */
export function valuesOf<A>(answers: Answers<A>): A[] {
  const values: A[] = [];
  for (const answer of answers) if (answer !== undefined && 'value' in answer) values.push(answer.value);
  return values;
}

export const tally = <A>(answers: Answers<A>, passes: (value: A) => boolean): number =>
  valuesOf(answers).filter(passes).length;

export const isMajority = (answers: Answers<unknown>): boolean =>
  valuesOf(answers).length >= quorumOf(answers.length);
