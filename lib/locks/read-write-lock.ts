import type { LockClient, QueueTerms } from '../client/lock-client.js';
import { LockConfigError } from '../api/errors.js';
import { inQuotes } from '../runtime/text.js';
import type { AcquireCall } from './call.js';
import type { Lock } from '../api/lock.js';
import { QueueLock } from './queue-lock.js';

/** Readers share it; a writer has it alone. The order of arrival decides. */
export class ReadWriteLock {
  readonly read: Lock;
  readonly write: Lock;

  constructor(name: string, client: LockClient) {
    const read = new ReadLock(name, client);
    const write = new WriteLock(name, client);
    read.write = write;
    write.read = read;
    this.read = read;
    this.write = write;
  }
}

export const KIND = { kind: 'read-write', capacity: Number.MAX_SAFE_INTEGER } as const;

/** One side. It does not count holders of the other side. */
abstract class Side extends QueueLock {
  protected override get forcedMode(): QueueTerms['mode'] {
    return this.queue.mode;
  }
}

class ReadLock extends Side {
  write: WriteLock | undefined;

  constructor(name: string, client: LockClient) {
    super(name, client, { ...KIND, mode: 'shared' });
  }

  /** A scope that writes may also read, and continue to read after the write. */
  protected override ownWriteHold(call: AcquireCall): string | undefined {
    const hold = this.write?.findHold(call);
    return hold?.held === true ? hold.tenure.owner : undefined;
  }
}

class WriteLock extends Side {
  read: ReadLock | undefined;

  constructor(name: string, client: LockClient) {
    super(name, client, { ...KIND, mode: 'exclusive' });
  }

  /** A reader that waited to write would wait for itself, and two such readers for each other. */
  protected override ownWriteHold(call: AcquireCall): undefined {
    if (this.read?.findHold(call)?.held !== true) return;
    throw new LockConfigError(
      'write',
      `"${inQuotes(this.name)}" is held for reading here, and a reader cannot become the writer: two that tried would wait for ` +
        'each other. Take the write lock first, then the read lock, or release the read lock before',
      { key: this.name },
    );
  }
}
