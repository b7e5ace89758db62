import { clearTimer, setTimer } from '../../runtime/runtime.js';
import { type Member, quorumOf } from './member.js';

/** ms for which a round waits for further members after the answer of a majority. */
export const ANSWER_TIME = 250;

/**
 * Asks all members that are not down.
 * @param time ms to wait for further members after the answer of a majority
 * @returns the answers by index; undefined for a member without an answer
 */
export function askAll<T>(
  members: readonly Member[],
  ask: (member: Member, index: number) => Promise<T>,
  time: number,
): Promise<readonly (T | undefined)[]> {
  const answers: (T | undefined)[] = members.map(() => undefined);
  return new Promise((resolve) => {
    let answered = 0;
    let timer: NodeJS.Timeout | undefined;
    const done = () => {
      clearTimer(timer);
      resolve([...answers]);
    };
    const asked = members.map(async (member, index) => {
      if (member.isDown) return;
      try {
        answers[index] = await ask(member, index);
        if (++answered === quorumOf(members.length) && time < Infinity) timer = setTimer(done, time);
      } catch {
        // A failed member counts as one without an answer.
      }
    });
    void Promise.all(asked).then(done);
  });
}
