import type { CanActivate, ModuleMetadata, Type } from '@nestjs/common';
import type { Duration } from '../api/duration.js';

/** A guard as `@UseGuards` takes it: a class, which Nest makes, or an object. */
export type LockBoardGuard = CanActivate | Type<CanActivate>;

/** A name or a number; nothing if it is not known. */
export type LockBoardActor = string | number | bigint | null | undefined;

/** What `LockBoardModule.forRoot` takes. */
export interface LockBoardOptions {
  /** Where the page is, below the global prefix of the application. @default 'locks' */
  path?: string;
  /**
   * The names of the LockServices that can be looked at, the first one first; `'default'` is the one without a name.
   * @default ['default']
   */
  instances?: readonly string[];
  /**
   * False lets viewers ask for a lock and take it away. It needs a guard: work whose lock is taken away may run twice.
   * @default true
   */
  readOnly?: boolean;
  /**
   * Guards of all routes of the board, those that only read included. They come after the guards of the application.
   * @default none
   */
  guards?: readonly LockBoardGuard[];
  /** Modules with the providers of the guards. @default none */
  imports?: ModuleMetadata['imports'];
  /**
   * The name of the person behind a request, for the reason of a request or removal. It gets the request of
   * Express or Fastify. A number, such as the id of a user, becomes text; of a longer name the first 200 characters count.
   * Without a name the reason names the board only. If it gives anything else, such as a whole user, the viewer gets 500
   * with a message that says so; if it throws, the viewer gets that error. Nothing is asked for or taken away then.
   * @default none: the reason names the board only
   */
  actor?: (request: unknown) => LockBoardActor | Promise<LockBoardActor>;
  /**
   * How often the store is read while the page is open somewhere, ms, from 200 on. A store that takes long to answer is read less
   * often: its answers take a fifth of the time, but no more than 20 s pass between two of them.
   * @default 1_000
   */
  interval?: Duration;
  /** How many locks are shown at most, from 1 to 10,000. @default 1_000 */
  limit?: number;
  /**
   * How many pages one process keeps up to date at a time, from 1 to 10,000. Further ones are answered 503 with `Retry-After`, and try
   * again. All of them take time of the event loop that renews the leases of the process.
   * @default 100
   */
  maxViewers?: number;
}

/** The options with their defaults. */
export type ResolvedBoardOptions = Readonly<Required<LockBoardOptions>> & { readonly interval: number };
