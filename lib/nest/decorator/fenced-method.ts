import 'reflect-metadata';

/** Marks the wrappers of fenced methods, and by their metadata what wraps these. */
const FENCED = Symbol.for('nestjs-distributed-lock.fenced-method');

interface FencedMark {
  insideTransaction: boolean;
}

export function markFenced(method: object): FencedMark {
  const mark: FencedMark = { insideTransaction: false };
  Reflect.defineMetadata(FENCED, mark, method);
  return mark;
}

/** Whether the fence of a locked method is known to guard no transaction. */
export const isFencedOutside = (method: object): boolean =>
  (Reflect.getMetadata(FENCED, method) as FencedMark | undefined)?.insideTransaction === false;
