const worthy = new WeakSet<Error>();

/** Marks the failure of a request whose cause is gone: the same request is worth one more try, at once. */
export function worthAnotherTry<E extends Error>(error: E): E {
  worthy.add(error);
  return error;
}

export const isWorthAnotherTry = (error: Error): boolean => worthy.has(error);
