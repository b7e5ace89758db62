import { STATUS_CODES } from 'node:http';
import { HttpException } from '@nestjs/common';

/** Marks the errors of this package, so that a guard recognises an error that another copy of this package has thrown. */
const BRAND = Symbol.for('nestjs-distributed-lock.error');

/** One for each class of error. */
export type LockErrorCode =
  | 'LOCK_TIMEOUT'
  | 'LOCK_UNAVAILABLE'
  | 'LOCK_LOST'
  | 'LOCK_ABORTED'
  | 'LOCK_KEY'
  | 'LOCK_KIND_MISMATCH'
  | 'LOCK_CONFIG'
  | 'LOCK_CLOSED';

export interface LockErrorDetails {
  readonly key?: string | undefined;
  readonly cause?: unknown;
}

export interface LockErrorStatus {
  readonly status: number;
  /** Left out if a client learns only that the server has failed. */
  readonly publicMessage?: string;
}

/** What all errors of this package have in common, on top of the class that decides how Nest treats them. */
function lockErrorOn(Base: new (message: string) => Error) {
  abstract class BaseLockError extends Base {
    /** Which failure this is. Stable across versions and package copies. */
    abstract readonly code: LockErrorCode;

    /** The lock's name as the caller gave it, if the failure concerns one lock. */
    readonly key: string | undefined;

    /** HTTP status. Nest's own exception handling reads these three and answers without a filter. */
    readonly status: number;
    readonly statusCode: number;
    /** Whether `message` may be shown to a client: it is the public one. */
    readonly expose: boolean;
    /** The text for clients of the application: no name, owner, host or command. */
    readonly publicMessage: string;

    constructor(message: string, http: LockErrorStatus, { key, cause }: LockErrorDetails = {}) {
      super(message);
      if (cause !== undefined) this.cause = cause;
      this.name = new.target.name;
      this.key = key;
      this.status = http.status;
      this.statusCode = http.status;
      this.publicMessage = http.publicMessage ?? 'Internal server error';
      this.expose = message === this.publicMessage;
      Object.defineProperty(this, BRAND, { value: true });
    }
  }
  return BaseLockError;
}

/** Every failure of this package: `error instanceof LockError` holds for all of them. */
export abstract class LockError extends lockErrorOn(Error) {
  static override [Symbol.hasInstance](this: unknown, error: unknown): boolean {
    if (this === LockError) return isLockError(error);
    return Function.prototype[Symbol.hasInstance].call(this, error);
  }
}

/** What Nest sends as the body of the answer. */
export interface LockErrorBody {
  readonly statusCode: number;
  /** The name of the status. */
  readonly error: string | undefined;
  readonly message: string;
  readonly code: LockErrorCode;
}

/** Its own fields are set below: Nest, and what works like it, reads the body from `response`. */
const HttpError = HttpException as unknown as new (message: string) => Error;

/** An error that is normal in every healthy application. Nest would log any other error as a fault, with its stack. */
export abstract class ExpectedLockError extends lockErrorOn(HttpError) {
  /** @internal */
  readonly response: LockErrorBody;

  constructor(code: LockErrorCode, message: string, http: LockErrorStatus, details: LockErrorDetails) {
    super(message, http, details);
    const { status, publicMessage } = this;
    this.response = { statusCode: status, error: STATUS_CODES[status], message: publicMessage, code };
  }

  getResponse(): LockErrorBody {
    return this.response;
  }
}

/** True for every error of this package, thrown by any copy of it. */
export function isLockError(error: unknown): error is LockError {
  return error instanceof Error && (error as { [BRAND]?: unknown })[BRAND] === true;
}
