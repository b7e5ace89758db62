import * as scripts from '../../lib/stores/redis/commands/script.js';
import type { Monitor } from './monitor.js';

const ACQUISITIONS = [scripts.acquire, scripts.acquireAll, scripts.queueAcquire].map(({ sha }) => sha);
const RELEASES = [scripts.release, scripts.queueRelease].map(({ sha }) => sha);

/** Whether acquisitions have come to a server, and behind each a release for the same owner. */
export function areTakenBack({ commands }: Monitor): boolean {
  const acquisitions = commands.flatMap(([, sha = '', keys, ...rest], at) =>
    ACQUISITIONS.includes(sha) ? [{ owner: rest[Number(keys)] ?? '', at }] : [],
  );
  return (
    acquisitions.length > 0 &&
    acquisitions.every(({ owner, at }) =>
      commands.slice(at).some((command) => RELEASES.includes(command[1] ?? '') && command.includes(owner)),
    )
  );
}
