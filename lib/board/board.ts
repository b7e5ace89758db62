import { type BeforeApplicationShutdown, NotFoundException, type OnModuleInit } from '@nestjs/common';
import type { ApplicationConfig, ModuleRef } from '@nestjs/core';
import type { LockService } from '../module/lock-service.js';
import { unguardedBoardWarning } from '../module/options-warnings.js';
import { stateOf } from '../module/service-state.js';
import { serviceOf } from '../nest/service/service-of.js';
import { detailsOf } from './feed/detail.js';
import { outageOf } from '../api/outage.js';
import { LockFeed } from './feed/lock-feed.js';
import { urlOf, type BoardRequest } from './http/request.js';
import { endConnectionAfter, streamOf } from './http/connection.js';
import { rawOf, respond, statusOf, type BoardResponse, type Headers } from './http/respond.js';
import type { ResolvedBoardOptions } from './lock-board.options.js';

/** The state of one LockService. */
export interface BoardInstance {
  readonly service: LockService;
  readonly feed: LockFeed;
  readonly detailOf: ReturnType<typeof detailsOf>;
}

/** The LockServices that one board shows. */
export class Board implements OnModuleInit, BeforeApplicationShutdown {
  /** The application closes: its server takes no further connection, and waits for the end of all open ones. */
  private isClosing = false;
  private lastTurn = Promise.resolve();
  private readonly byName = new Map<string, BoardInstance>();

  constructor(
    readonly options: ResolvedBoardOptions,
    private readonly modules: ModuleRef,
    private readonly application: ApplicationConfig,
  ) {}

  /** @throws LockConfigError if there is no such LockService */
  onModuleInit(): void {
    for (const name of this.options.instances) {
      const service = serviceOf(this.modules, name === 'default' ? undefined : name);
      const feed = new LockFeed(service, name, this.options);
      this.byName.set(name, { service, feed, detailOf: detailsOf(service) });
      if (this.isOpen) stateOf(service)?.bootWarnings.set('board', unguardedBoardWarning(this.options.path));
    }
  }

  /** In production, without a guard of its own or of the application. */
  private get isOpen(): boolean {
    const { application, options } = this;
    const guards = [application.getGlobalGuards(), application.getGlobalRequestGuards(), options.guards];
    return guards.flat().length === 0 && process.env.NODE_ENV === 'production';
  }

  /** The instance that a request names; the first one if it names none. @throws NotFoundException */
  instance(request: BoardRequest): BoardInstance {
    const name = urlOf(request).searchParams.get('instance') ?? this.options.instances[0] ?? '';
    const instance = this.byName.get(name);
    if (instance === undefined) throw new NotFoundException('There is no such instance');
    return instance;
  }

  /** There are as many viewers as `maxViewers` says. */
  get isFull(): boolean {
    const watched = [...this.byName.values()].reduce((sum, { feed }) => sum + feed.watched, 0);
    return watched >= this.options.maxViewers;
  }

  /** Resolves in a turn of the event loop that no other page has: leases are renewed between pages that are asked for at once. */
  turn(): Promise<void> {
    return (this.lastTurn = this.lastTurn.then(() => new Promise((resolve) => setImmediate(resolve))));
  }

  /** Before an answer: the server would wait for its connection, which may stay open for longer than a minute. */
  endWhereClosing(response: BoardResponse): void {
    if (this.isClosing) endConnectionAfter(streamOf(rawOf(response)));
  }

  send(response: BoardResponse, type: string, body: string, headers: Headers = {}, status = 200): void {
    this.endWhereClosing(response);
    respond(response, status, type, body, headers);
  }

  /** As JSON, or with the reason for which there is no answer. */
  async answer(response: BoardResponse, give: () => Promise<object>): Promise<void> {
    try {
      this.send(response, 'application/json', JSON.stringify(await give()));
    } catch (error) {
      const body = JSON.stringify({ message: outageOf(error) });
      this.send(response, 'application/json', body, {}, statusOf(error));
    }
  }

  /** Before the server waits for its connections to end. */
  beforeApplicationShutdown(): void {
    this.isClosing = true;
    for (const { feed } of this.byName.values()) feed.close();
  }
}
