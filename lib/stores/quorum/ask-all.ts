import { clearTimer, setTimer } from '../../runtime/runtime.js';
import { type Member, quorumOf } from './member.js';

/** How long a round mostly waits for the other members, once a majority has answered, ms. */
export const ANSWER_TIME = 250;

/**
 * Asks all members that are not down.
 * @param time how long it waits for the others once a majority has answered, ms
 * @returns the answers by index; undefined for a member that has not answered
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
        // The member counts as one that has not answered.
      }
    });
    void Promise.all(asked).then(done);
  });
}
