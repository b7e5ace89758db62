import { readFileSync } from 'node:fs';
import { usageFailure } from './command-failure.js';
import type { Given } from './given.js';

/** The options that name files of TLS, as those of redis-cli are called; and what Node calls them. */
const FILES = { cacert: 'ca', cert: 'cert', key: 'key' } as const;

export type TlsFiles = Partial<Record<(typeof FILES)[keyof typeof FILES], Buffer>>;

/**
 * The certificate of a private authority, and that of this client with its key.
 * @throws Failure for a file that cannot be read
 */
export function tlsFilesOf(given: Given): TlsFiles {
  const files: TlsFiles = {};
  for (const [option, name] of Object.entries(FILES)) {
    const path = given.value(option);
    if (path !== undefined) files[name] = read(option, path);
  }
  if ((files.cert === undefined) !== (files.key === undefined))
    throw usageFailure('--cert and --key belong together');
  return files;
}

function read(option: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    const { code = 'UNKNOWN' } = error as NodeJS.ErrnoException;
    throw usageFailure(`--${option}: the file cannot be read (${code})`);
  }
}
