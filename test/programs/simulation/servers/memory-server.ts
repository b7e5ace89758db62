import type { LockStore, Subscription } from '../../../../lib/store/lock-store.js';
import type { QueueMessage } from '../../../../lib/store/queue-messages.js';
import { CharterModel } from '../../../doubles/charter-model.js';
import { Actor } from '../world/actor.js';
import type { Pipe } from '../world/link.js';
import type { Program } from '../world/program.js';
import type { World } from '../world/world.js';

export type Method =
  | 'acquire'
  | 'acquireAll'
  | 'renew'
  | 'release'
  | 'transfer'
  | 'handOver'
  | 'inspect'
  | 'forceRelease'
  | 'listing.names'
  | 'labels.keep'
  | 'labels.find'
  | 'waits.keep'
  | 'waits.find'
  | 'waits.forget'
  | 'periods.remember'
  | 'periods.recall'
  | 'subscribe'
  | 'listen'
  | 'unsubscribe'
  | 'run'
  | 'charter.amend'
  | 'ping';

export interface Request {
  readonly method: Method;
  readonly args: readonly unknown[];
  readonly listener: Listener | undefined;
}

/** Gets the messages of a subscription; where it stands, the link may drop them. */
export interface Listener {
  deliver(message: QueueMessage | undefined): void;
  readonly link: { readonly dropsMessages: boolean };
}

type Reply = (error: Error | undefined, value?: unknown) => void;

const COMMANDS = new Set<Method>(['acquire', 'acquireAll', 'renew', 'release', 'transfer', 'handOver']);

/** The store's own data, for faults. */
interface Inside {
  readonly locks: Map<
    string,
    { readonly isOver: boolean; readonly holders: Iterable<readonly [string, unknown]> }
  >;
}

let runs = 0;

/** A server whose locks are those of the memory store, as they are. What it forgets it forgets as a whole. */
export class MemoryServer {
  actor: Actor | undefined;
  commands = 0;
  /** Of all its lives. */
  readonly lags: { from: number; to: number }[] = [];
  private store: LockStore | undefined;
  private run = '';
  private keepsNotes = false;
  private charter: CharterModel | undefined;
  private readonly subscriptions = new Map<Pipe, Map<string, Promise<Subscription> | undefined>>();

  constructor(
    readonly world: World,
    readonly name: string,
    private readonly program: Program,
    /** ms by which its clock is ahead. */
    private readonly ahead: number,
  ) {
    this.start();
  }

  static restart(): void {
    runs = 0;
  }

  start(): void {
    const actor = (this.actor = new Actor(this.world, this.name, { ahead: this.ahead }));
    this.store = new (this.program.start(actor).MemoryLockStore)();
    this.run = (++runs).toString(16).padStart(40, 'f');
    this.charter = new CharterModel(() => actor.wall());
  }

  /** It is gone, with all that it knew. */
  kill(): void {
    if (this.actor === undefined) return;
    this.lags.push(...this.actor.lags);
    this.actor.kill();
    this.actor = undefined;
    for (const pipe of [...this.subscriptions.keys()]) pipe.cut();
    this.subscriptions.clear();
  }

  /** As FLUSHALL, or DEL of one lock. */
  forget(name?: string): void {
    const { locks } = this.store as unknown as Inside;
    if (name === undefined) locks.clear();
    else locks.delete(name);
    const { actor } = this;
    if (name === undefined && actor !== undefined) this.charter = new CharterModel(() => actor.wall());
  }

  keepNotes(keeps: boolean): void {
    this.keepsNotes = keeps;
  }

  get allLags(): { from: number; to: number }[] {
    return [...this.lags, ...(this.actor?.lags ?? [])];
  }

  holds(): { lock: string; owner: string }[] {
    if (this.actor === undefined) return [];
    const { locks } = this.store as unknown as Inside;
    return [...locks].flatMap(([lock, { holders }]) => [...holders].map(([owner]) => ({ lock, owner })));
  }

  /** The locks that are not free, and the subscriptions that are left. */
  get left(): { locks: string[]; connections: number } {
    const { locks } = this.store as unknown as Inside;
    this.actor?.onTurn?.();
    const inUse = [...locks].filter(([, lock]) => !lock.isOver).map(([name]) => name);
    return { locks: inUse, connections: this.subscriptions.size };
  }

  accept(pipe: Pipe): void {
    this.subscriptions.set(pipe, new Map());
    pipe.onClose.there = () => {
      const opened = this.subscriptions.get(pipe);
      this.subscriptions.delete(pipe);
      for (const subscription of opened?.values() ?? [])
        void subscription?.then((one) => {
          one.close();
        });
    };
  }

  receive(pipe: Pipe, request: Request, reply: Reply): void {
    const { method, args } = request;
    // A renewal of several holds is a command for each.
    if (COMMANDS.has(method)) this.commands += method === 'renew' ? (args[0] as unknown[]).length : 1;
    const { actor } = this;
    const answer = (error: unknown, value?: unknown) => {
      if (this.actor === actor) reply(error as Error | undefined, value);
    };
    this.answerTo(pipe, request).then(
      (value) => {
        answer(undefined, value);
      },
      (error: unknown) => {
        answer(error);
      },
    );
  }

  private async answerTo(pipe: Pipe, { method, args, listener }: Request): Promise<unknown> {
    const { actor, store } = this;
    if (store === undefined || actor === undefined) throw new Error('not started');
    switch (method) {
      case 'ping':
        return 'PONG';
      case 'renew':
        return await Promise.all(store.renew(args[0] as Parameters<LockStore['renew']>[0]));
      case 'handOver':
        return await store.queues?.handOver?.(...(args as never as [never, never]));
      case 'run':
        return this.run;
      case 'subscribe':
      case 'listen': {
        await this.subscribe(pipe, method, args[0] as string, listener);
        return;
      }
      case 'waits.forget':
        return this.keepsNotes ? undefined : await store.waits?.forget(args[0] as string);
      case 'unsubscribe':
        return this.unsubscribe(pipe, args[0] as string);
      default: {
        const [first, second] = method.split('.') as [keyof LockStore, string | undefined];
        const part = (first as string) === 'charter' ? this.charter : store[first];
        const owner = (second === undefined ? store : part) as unknown as Record<
          string,
          (...given: readonly unknown[]) => unknown
        >;
        return await owner[second ?? first]?.(...args);
      }
    }
  }

  private async subscribe(
    pipe: Pipe,
    method: 'subscribe' | 'listen',
    name: string,
    listener: Listener | undefined,
  ): Promise<void> {
    const opened = this.subscriptions.get(pipe);
    const { store } = this;
    if (opened === undefined || store === undefined || opened.has(`${method} ${name}`)) return;
    const push = (message?: QueueMessage) => {
      if (listener?.link.dropsMessages !== true)
        pipe.send('back', () => {
          listener?.deliver(message);
        });
    };
    const subscription =
      method === 'listen' ? store.subscribeToReleases(name, push) : store.queues?.subscribe(name, push);
    opened.set(`${method} ${name}`, subscription);
    await subscription;
  }

  private async unsubscribe(pipe: Pipe, key: string): Promise<void> {
    const opened = this.subscriptions.get(pipe);
    const subscription = opened?.get(key);
    opened?.delete(key);
    (await subscription)?.close();
  }
}
