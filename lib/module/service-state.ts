import { Logger } from '@nestjs/common';
import { StandingDeadlocks } from '../client/deadlock/standing-deadlocks.js';
import type { LockClient } from '../client/lock-client.js';
import type { Elections } from '../locks/election/elections.js';
import { connect, serversOf } from '../stores/create-store.js';
import type { DeadlockStep } from '../api/deadlock.js';
import type { ResolvedLockOptions } from '../api/resolved-options.js';
import type { Election } from '../api/election.js';
import { logEvents } from './event-log.js';
import { type ProbableMistake, settingsWarnings } from './options-warnings.js';
import type { Server } from '../stores/redis/connection/deployment.js';

/** The side of a LockService for the module and the decorators, hidden from its users. */
export interface ServiceState {
  readonly settings: ResolvedLockOptions;
  /** The beginning of the owners of its locks. */
  clientId(): string;
  /** The share of the lease that is left, of the lease closest to its end; undefined if it renews none. */
  headroomShare(): number | undefined;
  /** Opens the connections. */
  connect(): void;
  /** Reports a setting that is allowed and probably not meant, unless its code is silenced. */
  warn(warning: ProbableMistake): void;
  /**
   * One look at the deadlocks that stand among all processes; see StandingDeadlocks.
   * @param names locks that are waited for
   */
  lookForDeadlocks(names: readonly string[]): Promise<readonly (readonly DeadlockStep[])[]>;
  /** The Redis servers of its store, to be asked one by one. */
  servers(): Promise<readonly Server[]>;
  /** What holds its locks. */
  readonly client: LockClient;
  /** The service shuts down, or has ended. */
  isEnding(): boolean;
  /** Tells the work of all terms to end. Resolves when this process leads nowhere. */
  endTerms(): Promise<void>;
  /** The elections in which this process takes part now. */
  elections(): readonly Election[];
  /** Of locked methods, for the boot. The key keeps a class with several instances from a second warning. */
  readonly bootWarnings: Map<string, ProbableMistake>;
  /** The application shuts down, and the service has not ended. */
  draining: boolean;
  /** The end of the service. */
  closing: Promise<void> | undefined;
  /** LockModule closes it after the last hook of the application. */
  closesLast: boolean;
}

/** Begins to log the events of the client, too. @param name of the service, if there are several */
export function stateFor(client: LockClient, elections: Elections, name: string | undefined): ServiceState {
  const { store, options } = client;
  const logger = new Logger(name === undefined ? 'LockService' : `LockService(${name})`);
  logEvents(client, logger);
  for (const warning of settingsWarnings(options)) client.warn(warning);
  const standingDeadlocks = new StandingDeadlocks(store, client.id);
  const state: ServiceState = {
    settings: options,
    draining: false,
    closing: undefined,
    closesLast: false,
    client,
    bootWarnings: new Map(),
    clientId: () => client.id,
    headroomShare: () => client.watchdog.headroomShare(),
    connect: () => {
      logger.log(`Holds locks as "${options.label}"`);
      connect(store);
    },
    warn: (warning) => {
      client.warn(warning);
    },
    lookForDeadlocks: (names) => standingDeadlocks.look(names),
    servers: () => serversOf(store),
    isEnding: () => state.draining || state.closing !== undefined,
    endTerms: () => elections.close(),
    elections: () => elections.inUse,
  };
  return state;
}

/** Of all copies of this package in the process: a decorator of one copy may get the service of another. */
const STATES = Symbol.for('nestjs-distributed-lock.service-states');
const shared = globalThis as { [STATES]?: WeakSet<ServiceState> | undefined };
const states = (shared[STATES] ??= new WeakSet<ServiceState>());

/** A property of the service, so that a Proxy around it has the state too. */
const STATE = Symbol.for('nestjs-distributed-lock.service-state');

export function rememberState(service: object, state: ServiceState): ServiceState {
  states.add(state);
  Object.defineProperty(service, STATE, { value: state });
  return state;
}

/** Undefined for a test double of the service, of which some have a value for every property that is asked for. */
export function stateOf(service: object): ServiceState | undefined {
  const state = (service as { [STATE]?: ServiceState })[STATE];
  return state !== undefined && states.has(state) ? state : undefined;
}
