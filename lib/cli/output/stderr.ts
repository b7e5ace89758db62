import { createWriteStream } from 'node:fs';

/**
 * stderr, where a write that waits for its reader (a full pipe, Ctrl-S) holds up nothing else: the command of `run` has to end
 * with its lease all the same. A reader that is gone is no failure.
 */
export function openStderr(): NodeJS.WritableStream {
  return createWriteStream('', { fd: 2, autoClose: false }).on('error', () => undefined);
}
