/** A finding of `doctor`. Warnings and errors come with a cure. */
export type Finding = Good | Trouble;

interface Good {
  readonly level: 'ok';
  readonly code: string;
  /** Host and port; undefined for what concerns all nodes. */
  readonly node: string | undefined;
  readonly message: string;
}

export interface Trouble {
  /** `error`: locks cannot be taken or kept, or do not exclude. `warning`: something can cost a lock, or time. */
  readonly level: 'warning' | 'error';
  readonly code: string;
  readonly node: string | undefined;
  readonly message: string;
  readonly cure: string;
}
