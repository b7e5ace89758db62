import type {
  AcquireReply,
  AcquireRequest,
  LockStore,
  QueueMessage,
  ReleaseReply,
  ReleaseRequest,
} from '../../lib/store/index.js';
import type { ProcessOptions, Stage, WorldProcess } from './index.js';

const BUSY: AcquireReply = { granted: false, retryAfter: 60_000, holder: 'other:1' };

/** A process whose store answers acquisitions as a test has written it: busy where nothing is written. */
export class ScriptedPort {
  readonly asked: { readonly at: number; readonly request: AcquireRequest }[] = [];
  readonly released: { readonly at: number; readonly request: ReleaseRequest }[] = [];
  /** What the next requests get. */
  replies: (() => AcquireReply | Promise<AcquireReply>)[] = [];
  /** Whether messages of queues, or of releases where the store has no queues, can be subscribed to. */
  listens: () => Promise<boolean> = () => Promise.resolve(true);
  tell: (message: QueueMessage) => void = () => undefined;
  /** What releases get. */
  state: ReleaseReply = 'released';
  readonly process: WorldProcess;
  /** In the memory of the process; labels and the like are kept there. */
  store!: LockStore;

  constructor(
    private readonly stage: Stage,
    { hasQueues = true, ...options }: ProcessOptions & { readonly hasQueues?: boolean } = {},
  ) {
    this.process = stage.process({
      lockOrder: 'off',
      ...options,
      store: ({ MemoryLockStore }) => (this.store = this.scripted(new MemoryLockStore(), hasQueues)),
    });
  }

  get locks() {
    return this.process.locks;
  }

  /** When requests have come, in ms since the first, to half a percent and some ms: clocks differ, and timers are late. */
  get times(): readonly number[] {
    const [first] = this.asked;
    return this.asked.map(({ at }) => at - (first?.at ?? 0));
  }

  /** @param time ms for which the answer is under way */
  after(time: number, reply: AcquireReply | Error): () => Promise<AcquireReply> {
    return async () => {
      await this.stage.pass(time);
      if (reply instanceof Error) throw reply;
      return reply;
    };
  }

  /** The store does not answer, or refuses. */
  failing(effect: 'unknown' | 'refused' = 'unknown', permanent = false): () => Promise<AcquireReply> {
    return () => Promise.reject(new this.process.package.LockUnavailableError('a', { effect, permanent }));
  }

  private scripted(store: LockStore, hasQueues: boolean): LockStore {
    const { asked, released, stage } = this;
    const subscribe = async (onMessage: (message: QueueMessage) => void) => {
      if (!(await this.listens())) throw new Error('no messages');
      this.tell = onMessage;
      return { active: true, close: () => undefined };
    };
    return Object.defineProperties(
      Object.assign(store, {
        acquire: async (request: AcquireRequest) => {
          asked.push({ at: stage.now(), request: structuredClone(request) });
          return await (this.replies.shift() ?? (() => BUSY))();
        },
        release: (request: ReleaseRequest) => {
          released.push({ at: stage.now(), request: structuredClone(request) });
          return Promise.resolve(this.state);
        },
        renew: (requests: readonly unknown[]) => requests.map(() => Promise.resolve('held')),
        subscribeToReleases: (_: string, onWake: () => void) => subscribe(onWake),
      }),
      {
        queues: {
          value: hasQueues
            ? { subscribe: (_: string, onMessage: (message: QueueMessage) => void) => subscribe(onMessage) }
            : undefined,
        },
        ...(hasQueues ? {} : { noQueues: { value: 'scripted' } }),
      },
    );
  }
}
