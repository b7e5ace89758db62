const unconfirmed = new WeakSet<object>();

/** For the error of a store that has granted a lock which does not count, such as one that too few replicas have. */
export function grantedInVain<E extends object>(error: E): E {
  unconfirmed.add(error);
  return error;
}

/** Whether the owner that asked is the holder in the store now, until it gives that up. */
export const isGrantedInVain = (error: object): boolean => unconfirmed.has(error);
