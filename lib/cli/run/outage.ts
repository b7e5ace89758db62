import { onOneLine } from '../../runtime/text.js';
import type { LockService } from '../../module/lock-service.js';
import { failureOf } from '../failure.js';
import { answerWithin } from '../service.js';

/** ms of waiting after which the reason is looked for. */
const NOTICE = 5_000;
/** ms for the look. */
const LOOK = 5_000;

/**
 * Tells once why a long wait is one for Redis, and not for the lock.
 * @returns ends it
 */
export function tellOfOutage(service: LockService, say: (text: string) => void): () => void {
  let isOver = false;
  const timer = setTimeout(() => {
    void outageOf(service).then((reason) => {
      if (reason !== undefined && !isOver) say(`${reason}: run goes on waiting`);
    });
  }, NOTICE);
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}

async function outageOf(service: LockService): Promise<string | undefined> {
  try {
    const { status, nodes } = await answerWithin(LOOK, service.health());
    if (status === 'up') return undefined;
    const reasons = nodes.map(({ node, error = '' }) => (error === '' ? '' : `${node} ${error}`));
    return `Redis is ${status}: ${onOneLine(reasons.filter(Boolean).join('; '))}`;
  } catch (error) {
    return failureOf(error).message;
  }
}
