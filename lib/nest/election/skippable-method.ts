import type { Observable } from 'rxjs';

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- of any method
export type SkippableMethod = (...args: any[]) => unknown;

/** Stands in place of the descriptor of a method that cannot be skipped: TypeScript's error contains the reason. */
interface Unskippable<Reason extends string> {
  readonly unskippable: Reason;
}

// eslint-disable-next-line @typescript-eslint/no-invalid-void-type -- the result of a method without one
type Nothing = void | undefined;

/** Never if the caller may get undefined in place of the result. */
export type SkippedRefusal<Method extends SkippableMethod> = 0 extends 1 & ReturnType<Method>
  ? never
  : ReturnType<Method> extends Observable<unknown>
    ? Unskippable<'a skipped call gives undefined, and no Observable'>
    : undefined extends Awaited<ReturnType<Method>>
      ? never
      : Awaited<ReturnType<Method>> extends Nothing
        ? never
        : Unskippable<'a skipped call gives undefined, which the return type of the method has to admit'>;
