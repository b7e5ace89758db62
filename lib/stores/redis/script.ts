import { createHash } from 'node:crypto';
import * as sources from './scripts.generated.js';

/** A Lua script and the digest that Redis knows it by. */
export interface Script {
  readonly source: string;
  readonly sha: string;
}

const script = (source: string): Script => ({
  source,
  sha: createHash('sha1').update(source).digest('hex'),
});

export const acquire = script(sources.acquire);
export const acquireAll = script(sources.acquireAll);
export const leaveTurns = script(sources.leaveTurns);
export const renew = script(sources.renew);
export const release = script(sources.release);
export const retire = script(sources.retire);
export const queueAcquire = script(sources.queueAcquire);
export const queueRelease = script(sources.queueRelease);
export const forceRelease = script(sources.forceRelease);
export const inspect = script(sources.inspect);
export const trial = script(sources.trial);
