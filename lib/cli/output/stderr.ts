import { createWriteStream } from 'node:fs';

/**
 * stderr. A write that waits for its reader (a full pipe, Ctrl-S) blocks nothing else: the command of `run` must end with
 * its lease. A reader that is gone is no failure.
 */
export function openStderr(): NodeJS.WritableStream {
  return createWriteStream('', { fd: 2, autoClose: false }).on('error', () => undefined);
}
