/** What requests for the kinds with a queue ask for. */
export const FAIR = { kind: 'fair', mode: 'exclusive', capacity: 1 } as const;
export const READ = { kind: 'read-write', mode: 'shared', capacity: Number.MAX_SAFE_INTEGER } as const;
export const WRITE = { ...READ, mode: 'exclusive' } as const;
export const SEMAPHORE = { kind: 'semaphore', mode: 'shared', capacity: 2 } as const;

/** Takes an entry in the queue if the lock is busy. */
export const STAND = { entry: { arrival: undefined }, ownWriteHold: undefined };

/** Only asks. */
export const ASK = { entry: undefined, ownWriteHold: undefined };
