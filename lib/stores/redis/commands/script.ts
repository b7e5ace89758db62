import { createHash } from 'node:crypto';
import * as sources from '../scripts.generated.js';

/** A Lua script and the digest that Redis knows it by. */
export interface Script {
  readonly source: string;
  readonly sha: string;
  /** The name of the script in lane.lua, if lane.lua can run it together with others. */
  readonly inLane: string | undefined;
}

const script = (source: string, inLane?: string): Script => ({
  source,
  sha: createHash('sha1').update(source).digest('hex'),
  inLane,
});

export const acquire = script(sources.acquire, 'acquire');
export const acquireAll = script(sources.acquireAll, 'acquire-all');
export const renew = script(sources.renew, 'renew');
export const release = script(sources.release, 'release');
export const releaseAll = script(sources.releaseAll);
export const lane = script(sources.lane);
export const queueAcquire = script(sources.queueAcquire, 'queue-acquire');
export const queueRelease = script(sources.queueRelease, 'queue-release');
export const transfer = script(sources.transfer);
export const queueTransfer = script(sources.queueTransfer);
export const remember = script(sources.remember);
export const recall = script(sources.recall);
export const inspect = script(sources.inspect);
export const scan = script(sources.scan);
export const subscribers = script(sources.subscribers);
export const note = script(sources.note);
export const trial = script(sources.trial);
export const charter = script(sources.charter);
