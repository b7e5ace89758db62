import { type LockStore, LockUnavailableError, MemoryLockStore } from '../../lib/index.js';
import type {
  AcquireAllReply,
  AcquireReply,
  HandOverReply,
  LossMessage,
  QueueMessage,
  ReleaseReply,
  StoredLock,
  StoreLabels,
  StorePeriods,
  LeaseLimit,
  StoreListing,
  StoreWaits,
  StoreQueues,
  StoreHealth,
  Subscription,
  TransferReply,
  TransferRequest,
} from '../../lib/store/index.js';

/** What a store with a bug does otherwise than the one that it is made of. */
export type Bug = (store: LockStore) => Partial<LockStore>;

/** A member or a field of the port, what is wrong with it, and the test of the suite that has to fail. */
export interface PlantedBug {
  readonly of: string;
  readonly wrong: string;
  readonly caughtBy: string;
  readonly bug: Bug;
  /** Of a store without the kinds with a queue. */
  readonly withoutQueues?: true;
}

const bugs: PlantedBug[] = [];
const plant = (of: string, wrong: string, caughtBy: string, bug: Bug) =>
  bugs.push({ of, wrong, caughtBy, bug });

type Granted = Extract<AcquireReply, { granted: true }>;
type Busy = Extract<AcquireReply, { granted: false }>;
type AllGranted = Extract<AcquireAllReply, { granted: true }>;
type AllBusy = Extract<AcquireAllReply, { granted: false }>;

const granted =
  (change: (reply: Granted) => Partial<Granted>): Bug =>
  (store) => ({
    acquire: async (request) => {
      const reply = await store.acquire(request);
      return reply.granted ? { ...reply, ...change(reply) } : reply;
    },
  });
const busy =
  (change: (reply: Busy) => object): Bug =>
  (store) => ({
    acquire: async (request) => {
      const reply = await store.acquire(request);
      return reply.granted ? reply : { ...reply, ...change(reply) };
    },
  });
const allGranted =
  (change: (reply: AllGranted) => Partial<AllGranted>): Bug =>
  (store) => ({
    acquireAll: async (request) => {
      const reply = await store.acquireAll(request);
      return reply.granted ? { ...reply, ...change(reply) } : reply;
    },
  });
const allBusy =
  (change: (reply: AllBusy) => object): Bug =>
  (store) => ({
    acquireAll: async (request) => {
      const reply = await store.acquireAll(request);
      return reply.granted ? reply : { ...reply, ...change(reply) };
    },
  });
const stored =
  (change: (lock: StoredLock) => object): Bug =>
  (store) => ({
    inspect: async (name) => {
      const lock = await store.inspect(name);
      return lock === null ? null : { ...lock, ...change(lock) };
    },
  });
const queued =
  (change: (queues: StoreQueues, store: LockStore) => Partial<StoreQueues>): Bug =>
  (store) => {
    const { queues } = store;
    if (queues === undefined) throw new Error('the memory store has queues');
    return { queues: { ...queues, ...change(queues, store) } };
  };
const told = (change: (message: QueueMessage) => object | undefined): Bug =>
  queued((queues) => ({
    subscribe: (client, onMessage) =>
      queues.subscribe(client, (message) => {
        const changed = change(message);
        if (changed !== undefined) onMessage({ ...message, ...changed });
      }),
  }));
/** A store without queues, which tells of losses as it should but for a change. */
export const withoutQueues =
  (change: (message: LossMessage) => object | undefined): Bug =>
  (store) => ({
    queues: undefined,
    noQueues: 'none',
    subscribeToLosses: (client, onMessage) =>
      store.queues!.subscribe(client, (message) => {
        if (message.type !== 'lost' && message.type !== 'asked' && message.type !== 'missed') return;
        const changed = change(message);
        if (changed !== undefined) onMessage({ ...message, ...changed });
      }),
  });
const health =
  (change: (health: StoreHealth) => object): Bug =>
  (store) => ({
    health: async () => {
      const now = await store.health();
      return { ...now, ...change(now) };
    },
  });
const closing = (all: readonly Subscription[]) => () => {
  for (const subscription of all) subscription.close();
};
/** The request without one of its fields. */
const without = <T extends object>(request: T, field: keyof T): T => ({ ...request, [field]: undefined });
const node = (wrong: object): Bug =>
  health(({ nodes }) => ({ nodes: nodes.map((each) => ({ ...each, ...wrong })) }));

// The store itself.

bugs.push({
  of: 'LockStore.noQueues',
  wrong: 'gives no reason',
  caughtBy: 'gives a reason only where it has no queues',
  bug: () => ({ noQueues: '' }),
  withoutQueues: true,
});
plant(
  'LockStore.noQueues',
  'gives a reason where it has them',
  'gives a reason only where it has no queues',
  () => ({ noQueues: 'too hard' }),
);
plant('LockStore.acquire', 'grants it to everybody', 'is granted to one of many', () => ({
  acquire: () => Promise.resolve({ granted: true, fencingToken: Date.now() }),
}));
plant(
  'LockStore.acquireAll',
  'takes what is free, one by one',
  'takes no name when one is busy, and reports that name, the time left and the holder',
  (store) => ({
    acquireAll: async (request) => {
      const fencingTokens: number[] = [];
      for (const name of request.names) {
        const reply = await store.acquire({ ...request, name });
        if (!reply.granted) return { ...reply, name };
        fencingTokens.push(reply.fencingToken);
      }
      return { granted: true, fencingTokens };
    },
  }),
);
plant(
  'LockStore.acquireAll',
  'keeps what it has taken before a name of another kind',
  'takes none of several plain locks when one of the names is a lock of another kind',
  (store) => ({
    acquireAll: async (request) => {
      try {
        return await store.acquireAll(request);
      } catch (error) {
        for (const name of request.names) await store.acquire({ ...request, name });
        throw error;
      }
    },
  }),
);
plant(
  'LockStore.acquireAll',
  'takes a name that is kept after its release',
  'takes no name while one is kept after its release',
  (store) => ({
    acquireAll: async (request) => {
      const reply = await store.acquireAll(request);
      if (reply.granted || reply.holder?.startsWith('kept:') !== true) return reply;
      await store.forceRelease(reply.name);
      return await store.acquireAll(request);
    },
  }),
);
plant(
  'AcquireAllReply.fencingTokens',
  'are those of the clock',
  'gives tokens beyond the last ones of local hand-offs',
  allGranted(({ fencingTokens }) => ({ fencingTokens: fencingTokens.map(() => Date.now() * 1_000) })),
);
const ENDED_OTHERWISE = 'grows also when a lease has run out, and when a lock is taken by force';
const released = new Set<string>();
plant('AcquireReply.fencingToken', 'begins anew when a lease has run out', ENDED_OTHERWISE, (store) => ({
  acquire: async (request) => {
    const reply = await store.acquire(request);
    return reply.granted && !released.has(request.name) ? { ...reply, fencingToken: 1 } : reply;
  },
  release: (request) => {
    released.add(request.name);
    return store.release(request);
  },
}));
const taken = new Set<string>();
plant('AcquireReply.fencingToken', 'begins anew after a forced release', ENDED_OTHERWISE, (store) => ({
  acquire: async (request) => {
    const reply = await store.acquire(request);
    return reply.granted && taken.has(request.name) ? { ...reply, fencingToken: 1 } : reply;
  },
  forceRelease: (name) => {
    taken.add(name);
    return store.forceRelease(name);
  },
}));
let places = 0;
plant(
  'LockStore.locationOf',
  'says another place each time',
  'names one location for a name, always the same',
  () => ({
    locationOf: () => String(++places),
  }),
);
plant(
  'LockStore.outageOf',
  'reports one that there is not',
  'reports no outage while its servers answer',
  () => ({
    outageOf: (name) => new LockUnavailableError(name),
  }),
);
const CALLED = 'tells its clients what each of them is called, for the time that was asked for';
const labelled =
  (change: (labels: StoreLabels) => Partial<StoreLabels>): Bug =>
  ({ labels }) => ({
    labels: labels && { keep: labels.keep.bind(labels), find: labels.find.bind(labels), ...change(labels) },
  });
plant(
  'LockStore.labels',
  'are those of the process',
  CALLED,
  labelled(() => ({ find: () => Promise.resolve('this process') })),
);
plant(
  'StoreLabels.keep',
  'keeps for good',
  CALLED,
  labelled((labels) => ({ keep: (client, label) => labels.keep(client, label, 3_600_000) })),
);
plant(
  'StoreLabels.find',
  'finds none',
  CALLED,
  labelled(() => ({ find: () => Promise.resolve(undefined) })),
);
const WAITS =
  'keeps what each of its clients waits for, for the time that was asked for or until the client forgets it';
const awaited =
  (change: (waits: StoreWaits) => Partial<StoreWaits>): Bug =>
  ({ waits }) => ({
    waits: waits && {
      keep: waits.keep.bind(waits),
      find: waits.find.bind(waits),
      forget: waits.forget.bind(waits),
      ...change(waits),
    },
  });
plant('LockStore.waits', 'are the labels', WAITS, ({ labels, waits }) => ({
  waits: labels &&
    waits && {
      keep: labels.keep.bind(labels),
      find: labels.find.bind(labels),
      forget: (client) => labels.keep(client, '', 1),
    },
}));
plant(
  'StoreWaits.keep',
  'keeps the first note',
  WAITS,
  awaited((waits) => ({
    keep: async (client, note, time) => {
      if ((await waits.find(client)) === undefined) await waits.keep(client, note, time);
    },
  })),
);
plant(
  'StoreWaits.find',
  'finds none',
  WAITS,
  awaited(() => ({ find: () => Promise.resolve(undefined) })),
);
plant(
  'StoreWaits.forget',
  'forgets nothing',
  WAITS,
  awaited(() => ({ forget: () => Promise.resolve() })),
);
const NAMED = 'names the locks that there are, by what their names begin with';
const listed =
  (change: (listing: StoreListing) => StoreListing['names']): Bug =>
  ({ listing }) => ({ listing: listing && { names: change(listing) } });
plant(
  'LockStore.listing',
  'names none',
  NAMED,
  listed(() => () => Promise.resolve({ names: [], cursor: undefined })),
);
plant(
  'StoreListing.names',
  'rejects',
  NAMED,
  listed(() => () => Promise.reject(new Error('no names'))),
);
plant(
  'NamesRequest.cursor',
  'is not looked at',
  NAMED,
  listed((listing) => {
    let steps = 0;
    return async (request) => {
      const { names, cursor } = await listing.names({ ...request, cursor: undefined });
      // In two steps, of which each is the first one.
      const half = Math.ceil(names.length / 2);
      return { names: names.slice(0, half), cursor: cursor ?? (++steps % 2 === 1 ? 'more' : undefined) };
    };
  }),
);
plant(
  'NamesReply.names',
  'lack one',
  NAMED,
  listed((listing) => async (request) => {
    const { names, cursor } = await listing.names(request);
    return { names: names.slice(1), cursor };
  }),
);
plant(
  'NamesReply.step',
  'leads to another step',
  NAMED,
  listed((listing) => async (request) => {
    if (request.cursor === 'another') return { names: [], cursor: undefined };
    return { ...(await listing.names(request)), step: 'another' };
  }),
);
plant(
  'NamesReply.cursor',
  'ends after the first name',
  NAMED,
  listed((listing) => async (request) => {
    const { names } = await listing.names(request);
    return { names: names.slice(0, 1), cursor: undefined };
  }),
);
plant(
  'ListedName.name',
  'has something before it',
  NAMED,
  listed((listing) => async (request) => {
    const { names, cursor } = await listing.names(request);
    return { names: names.map(({ name, isQueue }) => ({ name: `lock:${name}`, isQueue })), cursor };
  }),
);
plant(
  'NamesRequest.prefix',
  'is not looked at',
  NAMED,
  listed((listing) => (request) => listing.names({ ...request, prefix: '' })),
);
plant(
  'NamesRequest.prefix',
  'is a pattern',
  NAMED,
  listed((listing) => async (request) => {
    const { names, cursor } = await listing.names({ ...request, prefix: '' });
    const pattern = new RegExp(`^${request.prefix.replace(/[*%]/g, '.*')}`);
    return { names: names.filter(({ name }) => pattern.test(name)), cursor };
  }),
);
plant(
  'ListedName.isQueue',
  'is said of holders',
  NAMED,
  listed((listing) => async (request) => {
    const { names, cursor } = await listing.names(request);
    return { names: names.map(({ name }) => ({ name, isQueue: true })), cursor };
  }),
);
let nodes = 0;
plant(
  'LockStore.nodeOf',
  'says another node each time',
  'names one server for a name, always the same',
  () => ({
    nodeOf: () => String(++nodes),
  }),
);
plant(
  'LockStore.renew',
  'forgets all but the first',
  'answers for each hold, in a batch of any size',
  (store) => ({
    renew: (holds) => {
      const [first = Promise.resolve('deleted' as const)] = store.renew(holds.slice(0, 1));
      return holds.map(() => first);
    },
  }),
);
plant('LockStore.renew', 'makes a hold shorter', 'never makes a hold shorter', (store) => ({
  renew: (holds) =>
    holds.map(async (hold) => {
      await store.release(hold);
      await store.acquire(hold);
      return 'held' as const;
    }),
}));
const owned = new Map<string, string>();
plant('LockStore.renew', 'restores a lock whose lease has run out', 'does not restore a lock', (store) => ({
  acquire: (request) => {
    owned.set(request.name, request.owner);
    return store.acquire(request);
  },
  release: (request) => {
    owned.delete(request.name);
    return store.release(request);
  },
  renew: (holds) =>
    store.renew(holds).map(async (state, n) => {
      const hold = holds[n]!;
      if ((await state) !== 'deleted' || owned.get(hold.name) !== hold.owner) return await state;
      await store.acquire(hold);
      return 'held';
    }),
}));
plant('LockStore.release', 'releases what another holds', 'changes nothing for another owner', (store) => ({
  release: async (request) => ((await store.forceRelease(request.name)) ? 'released' : 'deleted'),
}));
plant('LockStore.subscribeToReleases', 'tells once', 'tells all subscribers about a release', (store) => ({
  subscribeToReleases: (name, onWake) => {
    let told = false;
    return store.subscribeToReleases(name, () => {
      if (!told) onWake();
      told = true;
    });
  },
}));
plant(
  'LockStore.renew',
  'renews one hold of a lock in a batch',
  'gives each holder a deadline of its own',
  (store) => ({
    renew: (holds) =>
      holds.map((hold, at) => {
        const isFirst = holds.findIndex(({ name }) => name === hold.name) === at;
        return isFirst ? store.renew([hold])[0]! : Promise.resolve('held');
      }),
  }),
);
plant('LockStore.subscribeToReleases', 'tells nobody', 'tells all subscribers about a release', (store) => ({
  subscribeToReleases: (name) => store.subscribeToReleases(name, () => undefined),
}));
plant(
  'LockStore.subscribeToReleases',
  'mixes up the names',
  'tells subscribers only about their own name',
  (store) => ({
    subscribeToReleases: async (_, onWake) => {
      const all = await Promise.all(
        Array.from({ length: 200 }, (_, n) => store.subscribeToReleases(`conformance:${String(n)}`, onWake)),
      );
      return { active: true, close: closing(all) };
    },
  }),
);
plant('LockStore.queues', 'are missing', 'gives a reason only where it has no queues', () => ({
  queues: undefined,
  noQueues: 'none',
}));
plant(
  'StoreQueues.subscribe',
  'tells nothing',
  'tells the client of the holder about a forced release, and about no other release',
  queued((queues) => ({ subscribe: (client) => queues.subscribe(client, () => undefined) })),
);
plant(
  'StoreQueues.subscribe',
  'tells every client',
  'tells each client what concerns it, and a closed client nothing',
  queued((queues) => ({
    subscribe: async (_, onMessage) => {
      const all = await Promise.all(
        ['x', 'y', 'z', 'holder'].map((each) => queues.subscribe(each, onMessage)),
      );
      return { active: true, close: closing(all) };
    },
  })),
);
bugs.push(
  {
    of: 'LockStore.subscribeToLosses',
    wrong: 'tells nothing',
    caughtBy: 'tells the client of the holder about a forced release, and about no other release',
    bug: withoutQueues(() => undefined),
    withoutQueues: true,
  },
  {
    of: 'LossMessage.type',
    wrong: 'is never lost',
    caughtBy: 'tells each client what concerns it, and a closed client nothing',
    bug: withoutQueues(({ type }) => (type === 'lost' ? { type: 'missed' } : {})),
    withoutQueues: true,
  },
);
plant('LockStore.inspect', 'knows nothing', 'inspects holder, time and token', () => ({
  inspect: () => Promise.resolve(null),
}));
plant('LockStore.forceRelease', 'does nothing', 'by force, frees a lock of any owner', () => ({
  forceRelease: () => Promise.resolve(true),
}));
plant('LockStore.forceRelease', 'takes no notice of the side', 'by force, frees one side', (store) => ({
  forceRelease: (name) => store.forceRelease(name),
}));
const FORCED = 'tells the holder which client has taken its lock by force, and the reason';
const WANTED = 'tells the client of an owner that its lock is wanted, and changes nothing';
plant('LockStore.forceRelease', 'takes no notice of the asker', FORCED, (store) => ({
  forceRelease: (name, mode) => store.forceRelease(name, mode),
}));
plant('LockStore.requestRelease', 'tells nothing', WANTED, () => ({
  requestRelease: () => Promise.resolve(true),
}));
plant('LockStore.requestRelease', 'does not say that it was told', WANTED, (store) => ({
  requestRelease: async (request) => {
    await store.requestRelease?.(request);
    return false;
  },
}));
plant('LockStore.requestRelease', 'says that a client was told that does not listen', WANTED, (store) => ({
  requestRelease: async (request) => {
    await store.requestRelease?.(request);
    return true;
  },
}));
plant('LockStore.requestRelease', 'takes the lock', WANTED, (store) => ({
  requestRelease: async (request) => {
    const told = await store.requestRelease?.(request);
    if (told === true) await store.release(request);
    return told === true;
  },
}));
for (const [field, wrong] of Object.entries({
  id: 'r 1',
  name: 'another',
  owner: 'wanted:2',
  by: '',
  reason: '',
})) {
  plant(`AskRequest.${field}`, 'is another', WANTED, (store) => ({
    requestRelease: async (request) =>
      (await store.requestRelease?.({ ...request, [field]: wrong })) === true,
  }));
}
plant('LockStore.health', 'rejects', 'reports the health of its nodes, at each depth', () => ({
  health: () => Promise.reject(new Error('ill')),
}));
plant('HealthDepth', 'must be given', 'reports the health of its nodes, at each depth', (store) => ({
  health: (depth) => (depth === undefined ? Promise.reject(new Error('how deep?')) : store.health(depth)),
}));
plant('HealthDepth', 'admits no mere look', 'reports the health of its nodes, at each depth', (store) => ({
  health: (depth) =>
    depth === 'look' ? Promise.resolve({ status: 'down', nodes: [], warnings: [] }) : store.health(depth),
}));
plant('LockStore.onConnectionChange', 'throws', 'reports only connection changes that happened', () => ({
  onConnectionChange: () => {
    throw new Error('not implemented');
  },
}));
plant('LockStore.close', 'never ends', 'closes without effect on its locks and on other clients', () => ({
  close: () => new Promise(() => undefined),
}));
plant(
  'LockStore.close',
  'cannot be called again',
  'closes without effect on its locks and on other clients',
  () => {
    let closed = false;
    return {
      close: () => {
        if (closed) return Promise.reject(new Error('closed'));
        closed = true;
        return Promise.resolve();
      },
    };
  },
);
plant(
  'LockStore.close',
  'goes on hearing',
  'closes without effect on its locks and on other clients',
  () => ({ close: () => Promise.resolve() }),
);
plant(
  'LockStore.close',
  'takes the locks along',
  'closes without effect on its locks and on other clients',
  (store) => {
    const names = new Set<string>();
    return {
      acquire: (request) => {
        names.add(request.name);
        return store.acquire(request);
      },
      close: async () => {
        for (const name of names) await store.forceRelease(name);
        await store.close();
      },
    };
  },
);

// What it is asked.

plant('AcquireRequest.name', 'has one lock for all', 'keeps names with any characters apart', (store) => ({
  acquire: (request) => store.acquire({ ...request, name: 'one' }),
}));
plant('AcquireRequest.name', 'is folded', 'keeps names with any characters apart', (store) => ({
  acquire: (request) => store.acquire({ ...request, name: request.name.toLowerCase() }),
}));
plant('AcquireRequest.name', 'is trimmed', 'keeps names with any characters apart', (store) => ({
  acquire: (request) => store.acquire({ ...request, name: request.name.trim() }),
}));
plant(
  'AcquireRequest.owner',
  'has one owner for all',
  'reports holder and time left to every other owner',
  (store) => ({
    acquire: (request) => store.acquire({ ...request, owner: 'one:1' }),
  }),
);
plant(
  'AcquireRequest.owner',
  'knows no owner again',
  'is granted again to its owner, and needs one release',
  (store) => ({
    acquire: (request) => store.acquire({ ...request, owner: `${request.owner}${String(++places)}` }),
  }),
);
plant(
  'AcquireRequest.leaseTime',
  'ends too early',
  'frees the lock of a silent holder after its lease, and not before',
  (store) => ({
    acquire: (request) => store.acquire({ ...request, leaseTime: 1 }),
  }),
);
plant(
  'AcquireRequest.leaseTime',
  'never ends',
  'frees the lock of a silent holder after its lease, and not before',
  (store) => ({
    acquire: (request) => store.acquire({ ...request, leaseTime: 600_000 }),
  }),
);
plant(
  'AcquireRequest.queue',
  'is a plain lock always',
  'grants a free lock of each kind, also to its owner again, and leaves nothing after the release',
  (store) => ({
    acquire: (request) => store.acquire(without(request, 'queue')),
  }),
);
plant(
  'AcquireRequest.leastToken',
  'is not looked at',
  'gives no token below the requested least token',
  (store) => ({
    acquire: (request) => store.acquire(without(request, 'leastToken')),
  }),
);
plant(
  'LockStore.together',
  'gives all releases the first answer',
  'answers each release of several that are asked for together',
  (store) => {
    let first: Promise<ReleaseReply> | undefined;
    let isTogether = false;
    return {
      together: (run) => {
        isTogether = true;
        const result = run();
        isTogether = false;
        return result;
      },
      release: (request) => {
        const reply = store.release(request);
        if (!isTogether) return reply;
        return (first ??= reply);
      },
    };
  },
);
plant('AcquireAllRequest.names', 'takes only the first', 'grants all names to one owner', (store) => ({
  acquireAll: async (request) => {
    const reply = await store.acquireAll({ ...request, names: request.names.slice(0, 1) });
    const [token = 0] = reply.granted ? reply.fencingTokens : [];
    return reply.granted ? { ...reply, fencingTokens: request.names.map((__, n) => token + n) } : reply;
  },
}));
plant(
  'AcquireAllRequest.owner',
  'has one owner for all',
  'never grants one name to two owners, in any overlap of groups',
  (store) => ({
    acquireAll: (request) => store.acquireAll({ ...request, owner: 'one:1' }),
  }),
);
plant(
  'AcquireAllRequest.leaseTime',
  'never ends',
  'grants all names for the lease, and not longer',
  (store) => ({
    acquireAll: (request) => store.acquireAll({ ...request, leaseTime: 600_000 }),
  }),
);
plant(
  'AcquireAllRequest.leaseTime',
  'is doubled',
  'grants all names for the lease, and not longer',
  (store) => ({
    acquireAll: (request) => store.acquireAll({ ...request, leaseTime: 2 * request.leaseTime }),
  }),
);
plant(
  'AcquireAllRequest.leaseTime',
  'ends too early',
  'grants all names for the lease, and not longer',
  (store) => ({
    acquireAll: (request) => store.acquireAll({ ...request, leaseTime: 1 }),
  }),
);
plant(
  'AcquireAllRequest.leastToken',
  'is of the first name only',
  'gives no token below the requested least token',
  (store) => ({
    acquireAll: async (request) => {
      const reply = await store.acquireAll(request);
      if (!reply.granted || request.leastToken === undefined) return reply;
      const [first, ...others] = reply.fencingTokens;
      return { ...reply, fencingTokens: [first!, ...others.map((token) => token - 1e12)] };
    },
  }),
);
plant(
  'AcquireAllRequest.leastToken',
  'is not looked at',
  'gives no token below the requested least token',
  (store) => ({
    acquireAll: (request) => store.acquireAll(without(request, 'leastToken')),
  }),
);
plant(
  'QueueTerms.kind',
  'is always the same',
  'grants a free lock of each kind, also to its owner again, and leaves nothing after the release',
  (store) => ({
    acquire: ({ queue, ...request }) =>
      store.acquire({ ...request, queue: queue && { ...queue, kind: 'fair' } }),
  }),
);
plant(
  'QueueTerms.mode',
  'is always exclusive',
  'admits readers together and a writer alone, in the order of arrival',
  (store) => ({
    acquire: ({ queue, ...request }) =>
      store.acquire({ ...request, queue: queue && { ...queue, mode: 'exclusive' } }),
  }),
);
plant(
  'QueueTerms.capacity',
  'is not counted',
  'counts permits, and refuses another number of them',
  (store) => ({
    acquire: ({ queue, ...request }) =>
      store.acquire({ ...request, queue: queue && { ...queue, capacity: 99 } }),
  }),
);
plant(
  'QueueRequest.entry',
  'is given to who does not want one',
  'only asks without an entry, and reports holder and time left with an entry',
  (store) => ({
    acquire: ({ queue, ...request }) =>
      store.acquire({
        ...request,
        queue: queue && { ...queue, entry: queue.entry ?? { arrival: undefined } },
      }),
  }),
);
plant('QueueRequest.entry', 'is given to nobody', 'hands over in the order of arrival', (store) => ({
  acquire: ({ queue, ...request }) =>
    store.acquire({ ...request, queue: queue && { ...queue, entry: undefined } }),
}));
plant(
  'QueueRequest.arrival',
  'is forgotten',
  'keeps the entry of an owner that asks again, or names its arrival again',
  (store) => ({
    acquire: ({ queue, ...request }) =>
      store.acquire({
        ...request,
        queue: queue && { ...queue, entry: queue.entry && { arrival: undefined } },
      }),
  }),
);
plant('QueueRequest.ownWriteHold', 'is not let in', 'by force, frees one side', (store) => ({
  acquire: ({ queue, ...request }) =>
    store.acquire({ ...request, queue: queue && { ...queue, ownWriteHold: undefined } }),
}));
plant('RenewRequest.name', 'is mixed up', 'answers for each hold, in a batch of any size', (store) => ({
  renew: (holds) => store.renew([...holds].reverse()),
}));
plant('RenewRequest.owner', 'is not looked at', 'answers for each hold, in a batch of any size', (store) => ({
  renew: (holds) =>
    holds.map(async (hold) => {
      const owner = (await store.inspect(hold.name))?.holders[0]?.owner ?? hold.owner;
      return (await store.renew([{ ...hold, owner }])[0]) ?? 'deleted';
    }),
}));
plant('RenewRequest.leaseTime', 'is not added', 'makes a hold last longer', (store) => ({
  renew: (holds) => store.renew(holds.map((hold) => ({ ...hold, leaseTime: 0 }))),
}));
plant(
  'RenewRequest.leaseTime',
  'is a lease where it is none',
  'with a lease of 0 only reports the state',
  (store) => ({
    renew: (holds) => store.renew(holds.map((hold) => ({ ...hold, leaseTime: hold.leaseTime || 30_000 }))),
  }),
);
plant('ReleaseRequest.name', 'is not looked at', 'frees the lock once', (store) => ({
  release: (request) => store.release({ ...request, name: 'one' }),
}));
plant('ReleaseRequest.owner', 'is not looked at', 'changes nothing for another owner', (store) => ({
  release: async (request) => {
    const owner = (await store.inspect(request.name))?.holders[0]?.owner ?? request.owner;
    return store.release({ ...request, owner });
  },
}));
plant(
  'ReleaseRequest.fencingToken',
  'is forgotten',
  'grows beyond the last token of a local hand-off',
  (store) => ({
    release: (request) => store.release(without(request, 'fencingToken')),
  }),
);
plant(
  'ReleaseRequest.keepFor',
  'is ignored',
  'keeps the lock from every owner for the requested time, and not longer',
  (store) => ({
    release: (request) => store.release(without(request, 'keepFor')),
  }),
);
plant(
  'ReleaseRequest.keepFor',
  'is ignored in queues',
  'keeps a hold from waiters too, for the time in its release',
  (store) => ({
    release: ({ keepFor, ...request }) =>
      store.release(request.queue === undefined ? { ...request, keepFor } : request),
  }),
);
plant(
  'ReleaseRequest.keepFor',
  'keeps what is not held',
  'frees the lock once, and is false after that',
  (store) => ({
    release: async (request) => {
      const reply = await store.release(request);
      const { name, keepFor } = request;
      if (reply === 'deleted' && keepFor !== undefined) {
        await store.acquire({ name, owner: 'kept:1', leaseTime: keepFor });
      }
      return reply;
    },
  }),
);
plant(
  'ReleaseRequest.fencingToken',
  'is forgotten beside keepFor',
  'grows beyond the last token of a local hand-off',
  (store) => ({
    release: (request) =>
      store.release(request.keepFor === undefined ? request : without(request, 'fencingToken')),
  }),
);
plant(
  'ReleaseRequest.keepFor',
  'is too short',
  'keeps the lock from every owner for the requested time, and not longer',
  (store) => ({
    release: ({ keepFor, ...request }) =>
      store.release(keepFor === undefined ? request : { ...request, keepFor: keepFor / 2 }),
  }),
);
plant(
  'ReleaseRequest.keepFor',
  'has no end',
  'keeps the lock from every owner for the requested time, and not longer',
  (store) => ({
    release: ({ keepFor, ...request }) =>
      store.release(keepFor === undefined ? request : { ...request, keepFor: 600_000 }),
  }),
);
plant(
  'ReleaseRequest.leaseTime',
  'is missed',
  'removes an entry, with or without the lease in the release',
  (store) => ({
    release: (request) =>
      store.release(
        request.queue !== undefined && request.leaseTime === undefined
          ? { ...request, owner: 'stranger:1' }
          : request,
      ),
  }),
);
plant(
  'ReleaseRequest.queue',
  'is not looked at',
  'grants a free lock of each kind, also to its owner again, and leaves nothing after the release',
  (store) => ({
    release: (request) => store.release(without(request, 'queue')),
  }),
);

// What it answers.

plant('AcquireReply.granted', 'is true of what is busy', 'is granted to one of many', (store) => ({
  acquire: async (request) => {
    const reply = await store.acquire(request);
    return reply.granted ? reply : { granted: true, fencingToken: 1 };
  },
}));
plant(
  'AcquireReply.fencingToken',
  'is no safe integer',
  'a token that is a safe integer',
  granted(() => ({ fencingToken: 2 ** 60 })),
);
plant(
  'AcquireReply.fencingToken',
  'does not grow',
  'grows with every acquisition of any owner',
  granted(() => ({ fencingToken: 7 })),
);
plant(
  'AcquireReply.retryAfter',
  'is unknown',
  'reports holder and time left to every other owner',
  busy(() => ({ retryAfter: Infinity })),
);
plant(
  'AcquireReply.retryAfter',
  'is at once',
  'reports holder and time left to every other owner',
  busy(() => ({ retryAfter: 0 })),
);
plant(
  'AcquireReply.holder',
  'is unknown',
  'reports holder and time left to every other owner',
  busy(() => ({ holder: undefined })),
);
plant(
  'AcquireReply.undecided',
  'is true of a holder that is known',
  'reports holder and time left to every other owner',
  busy(() => ({ undecided: true })),
);
plant(
  'AcquireReply.arrival',
  'is not told',
  'hands over in the order of arrival',
  busy(() => ({ arrival: undefined })),
);
plant(
  'AcquireReply.arrival',
  'is told to who does not stand',
  'only asks without an entry, and reports holder and time left with an entry',
  busy(({ arrival }) => ({ arrival: arrival ?? 1 })),
);
plant(
  'AcquireAllReply.granted',
  'is true of what is busy',
  'never grants one name to two owners, in any overlap of groups',
  (store) => ({
    acquireAll: async (request) => {
      const reply = await store.acquireAll(request);
      return reply.granted ? reply : { granted: true, fencingTokens: request.names.map(() => 1) };
    },
  }),
);
plant(
  'AcquireAllReply.fencingTokens',
  'are in another order',
  'gives the tokens in the order',
  allGranted(({ fencingTokens }) => ({ fencingTokens: [...fencingTokens].reverse() })),
);
plant(
  'AcquireAllReply.fencingTokens',
  'are too few',
  'grants all names to one owner',
  allGranted(({ fencingTokens }) => ({ fencingTokens: fencingTokens.slice(1) })),
);
plant(
  'AcquireAllReply.name',
  'is another',
  'takes no name when one is busy, and reports that name, the time left and the holder',
  allBusy(({ name }) => ({ name: `${name}0` })),
);
plant(
  'AcquireAllReply.retryAfter',
  'is unknown',
  'takes no name when one is busy, and reports that name, the time left and the holder',
  allBusy(() => ({ retryAfter: Infinity })),
);
plant(
  'AcquireAllReply.holder',
  'is unknown',
  'takes no name when one is busy, and reports that name, the time left and the holder',
  allBusy(() => ({ holder: undefined })),
);
plant(
  'AcquireAllReply.undecided',
  'is true of a holder that is known',
  'takes no name when one is busy, and reports that name, the time left and the holder',
  allBusy(() => ({ undecided: true })),
);
plant(
  'HoldState',
  "is 'deleted' where another has it",
  'answers for each hold, in a batch of any size',
  (store) => ({
    renew: (holds) =>
      store.renew(holds).map((state) => state.then((now) => (now === 'taken' ? 'deleted' : now))),
  }),
);
plant('ReleaseReply', "is 'deleted' where another has it", 'changes nothing for another owner', (store) => ({
  release: async (request) => ((await store.release(request)) === 'released' ? 'released' : 'deleted'),
}));
plant('Subscription.active', 'is false', 'tells all subscribers about a release', (store) => ({
  subscribeToReleases: async (name, onWake) => {
    const subscription = await store.subscribeToReleases(name, onWake);
    return { active: false, close: closing([subscription]) };
  },
}));
plant(
  'Subscription.active',
  'is false where it listens',
  'tells the client of the holder about a forced release, and about no other release',
  queued((queues) => ({
    subscribe: async (client, onMessage) => {
      const subscription = await queues.subscribe(client, onMessage);
      return { active: false, close: closing([subscription]) };
    },
  })),
);
plant(
  'Subscription.close',
  'does nothing',
  'ends for a subscription that closes, and goes on for the others',
  (store) => ({
    subscribeToReleases: async (name, onWake) => {
      await store.subscribeToReleases(name, onWake);
      return { active: true, close: () => undefined };
    },
  }),
);
plant(
  'Subscription.close',
  'does nothing where it listens',
  'tells each client what concerns it, and a closed client nothing',
  queued((queues) => ({
    subscribe: async (client, onMessage) => {
      await queues.subscribe(client, onMessage);
      return { active: true, close: () => undefined };
    },
  })),
);

// What it tells a client.

plant(
  'QueueMessage.type',
  'is never granted',
  'hands over in the order of arrival',
  told(({ type }) => (type === 'granted' ? undefined : {})),
);
plant(
  'QueueMessage.type',
  'is never next',
  'tells the waiter that becomes the next, and when it has to ask again',
  told(({ type }) => (type === 'next' ? undefined : {})),
);
plant(
  'QueueMessage.type',
  'is never lost',
  'tells the client of each hold that is taken by force, on one side or on all',
  told(({ type }) => (type === 'lost' ? undefined : {})),
);
plant(
  'QueueMessage.forced',
  'is missing',
  FORCED,
  told(({ type }) => (type === 'lost' ? { forced: undefined } : {})),
);
plant(
  'AskedMessage.type',
  'is never asked',
  WANTED,
  told(({ type }) => (type === 'asked' ? { type: 'missed' } : {})),
);
plant(
  'QueueMessage.type',
  'is one that nobody knows',
  'tells each client what concerns it, and a closed client nothing',
  told(() => ({ type: 'news' })),
);
plant(
  'QueueMessage.owner',
  'is a stranger',
  'tells each client what concerns it, and a closed client nothing',
  told(() => ({ owner: 'stranger:1' })),
);
plant(
  'QueueMessage.owner',
  'of what was missed is a stranger',
  'hands over in the order of arrival',
  queued((queues) => ({
    subscribe: (client, onMessage) => {
      onMessage({ type: 'missed', owner: 'stranger:1' });
      return queues.subscribe(client, onMessage);
    },
  })),
);
plant(
  'QueueMessage.fencingToken',
  'does not grow',
  'hands over in the order of arrival',
  told(({ type }) => (type === 'granted' ? { fencingToken: 1 } : {})),
);
plant(
  'QueueMessage.grantedAt',
  'is of another clock',
  'hands over in the order of arrival',
  told(({ type }) => (type === 'granted' ? { grantedAt: Date.now() } : {})),
);
plant(
  'QueueMessage.grantedAt',
  'is long ago',
  'hands over in the order of arrival',
  told(({ type }) => (type === 'granted' ? { grantedAt: -1e6 } : {})),
);
plant(
  'QueueMessage.leaseTime',
  'is always a claim',
  'grants a waiter its lease in the first second of its wait, else a claim, which a repeated request makes the lease',
  told(({ type }) => (type === 'granted' ? { leaseTime: 1_000 } : {})),
);
plant(
  'QueueMessage.leaseTime',
  'is never a claim',
  'grants a waiter its lease in the first second of its wait, else a claim, which a repeated request makes the lease',
  told(({ type }) => (type === 'granted' ? { leaseTime: 20_000 } : {})),
);
plant(
  'QueueMessage.within',
  'is unknown',
  'tells the waiter that becomes the next, and when it has to ask again',
  told(({ type }) => (type === 'next' ? { within: Infinity } : {})),
);

// What it knows of a lock.

plant(
  'StoredLock.holders',
  'are forgotten',
  'inspects holder, time and token',
  stored(() => ({ holders: [] })),
);
plant(
  'StoredLock.kind',
  'is always plain',
  'grants a free lock of each kind, also to its owner again, and leaves nothing after the release',
  stored(() => ({ kind: 'lock' })),
);
plant(
  'StoredLock.queue',
  'is forgotten',
  'hands over in the order of arrival',
  stored(() => ({ queue: [] })),
);
plant(
  'StoredLock.dead',
  'are all waiters',
  'takes no waiter for dead whose client hears it, and those that none hears for dead alike',
  stored(({ queue }) => ({ queue: queue.map((place) => ({ ...place, dead: true })) })),
);
plant(
  'StoredLock.queue',
  'is in another order',
  'hands over in the order of arrival',
  stored(({ queue }) => ({ queue: [...queue].reverse() })),
);
for (const [field, wrong] of [
  ['owner', 'x:1'],
  ['mode', 'shared'],
  ['since', 0],
] as const) {
  plant(
    `StoredLock.${field}`,
    'of a place is wrong',
    'only asks without an entry, and reports holder and time left with an entry',
    stored(({ queue }) => ({ queue: queue.map((place) => ({ ...place, [field]: wrong })) })),
  );
}
for (const [kind, caughtBy] of [
  ['fair', 'only asks without an entry, and reports holder and time left with an entry'],
  ['lock', 'shows the entries of its queue, each with its time'],
] as const) {
  plant(
    'StoredLock.since',
    `of a place is always now: ${kind}`,
    caughtBy,
    stored(({ queue }) => ({ queue: queue.map((place) => ({ ...place, since: Date.now() })) })),
  );
}
plant(
  'StoredLock.mode',
  'of a place is always exclusive',
  'admits readers together and a writer alone, in the order of arrival',
  stored(({ queue }) => ({ queue: queue.map((place) => ({ ...place, mode: 'exclusive' })) })),
);
plant(
  'StoredHold.mode',
  'is always exclusive',
  'admits readers together and a writer alone, in the order of arrival',
  stored(({ holders }) => ({ holders: holders.map((hold) => ({ ...hold, mode: 'exclusive' })) })),
);
plant(
  'StoredHold.since',
  'is always now',
  'inspects holder, time and token',
  stored(({ holders }) => ({ holders: holders.map((hold) => ({ ...hold, since: Date.now() })) })),
);
plant(
  'QueueRequest.ownWriteHold',
  'may be that of another owner',
  'admits readers together and a writer alone, in the order of arrival',
  (store) => ({
    acquire: async (request) => {
      const { queue, name } = request;
      if (queue?.ownWriteHold === undefined) return await store.acquire(request);
      const { holders = [] } = (await store.inspect(name)) ?? {};
      const writer = holders.find(({ mode }) => mode === 'exclusive');
      return await store.acquire({ ...request, queue: { ...queue, ownWriteHold: writer?.owner } });
    },
  }),
);
plant(
  'QueueMessage.listen',
  'is said to the first of a queue alone',
  'tells the waiter that becomes the next, and when it has to ask again',
  told((message) => (message.type === 'next' ? { listen: true } : {})),
);
plant(
  'StoredLock.fencingToken',
  'is unknown',
  'inspects holder, time and token',
  stored(() => ({ fencingToken: undefined })),
);
plant(
  'StoredLock.listeners',
  'are not counted',
  'inspects how many clients are subscribed to the release',
  stored(() => ({ listeners: 0 })),
);
for (const [field, wrong] of [
  ['owner', 'x:1'],
  ['remainingTime', 600_000],
  ['since', 1],
  ['mode', 'shared'],
] as const) {
  plant(
    `StoredHold.${field}`,
    'is wrong',
    'inspects holder, time and token',
    stored(({ holders }) => ({ holders: holders.map((hold) => ({ ...hold, [field]: wrong })) })),
  );
}

// How it is doing.

const HEALTH = 'reports the health of its nodes, at each depth';
plant(
  'StoreHealth.status',
  'is down where all is well',
  HEALTH,
  health(() => ({ status: 'down' })),
);
plant(
  'StoreHealth.nodes',
  'are none',
  HEALTH,
  health(() => ({ nodes: [] })),
);
plant(
  'StoreHealth.warnings',
  'are no list',
  HEALTH,
  health(() => ({ warnings: undefined })),
);
const CHARTER = { id: 'a', longestLease: 1, allowedLease: 1 };
plant(
  'StoreHealth.charter',
  'has no fields',
  HEALTH,
  health(() => ({ charter: {} as never })),
);
for (const [field, wrong] of Object.entries({ id: '', longestLease: 0, allowedLease: NaN })) {
  plant(
    `QuorumCharter.${field}`,
    `is ${String(wrong)}`,
    HEALTH,
    health(() => ({ charter: { ...CHARTER, [field]: wrong } })),
  );
}
const LIMIT = 'grants a hold as long as its limit, and raises the limit if it can';
const limited =
  (limit: Partial<LeaseLimit>): Bug =>
  () => ({
    leaseLimit: { most: Infinity, raise: () => Promise.resolve(undefined), ...limit },
  });
plant('LockStore.leaseLimit', 'allows nothing', LIMIT, limited({ most: 0 }));
plant('LeaseLimit.most', 'is no number', LIMIT, limited({ most: NaN }));
plant('LeaseLimit.raise', 'refuses', LIMIT, limited({ raise: () => Promise.resolve(new Error('no')) }));
for (const field of ['code', 'node', 'message']) {
  const warning = { code: 'a', node: 'a', message: 'a' };
  plant(
    `StoreWarning.${field}`,
    'is missing',
    HEALTH,
    health(() => ({ warnings: [{ ...warning, [field]: '' }] })),
  );
}
const REPLICA = { node: 'a', online: true, lag: 0, behind: 0 };
const PERSISTENCE = { appendOnly: true, lastSave: 0, failing: false };
for (const [field, wrong] of Object.entries({
  node: '',
  status: 'down',
  latency: -1,
  error: 'none',
  subscriber: 'yes',
  runId: 7,
  version: 7,
  role: 'primary',
  replicas: 1,
  clockOffset: NaN,
  evictionPolicy: 0,
  persistence: 'aof',
  uptime: -1,
  quarantine: NaN,
  sentinels: -1,
})) {
  plant(`NodeHealth.${field}`, `is ${String(wrong)}`, HEALTH, node({ [field]: wrong }));
}
for (const [field, wrong] of Object.entries({ node: '', online: 'yes', lag: -1, behind: '0' })) {
  plant(
    `ReplicaHealth.${field}`,
    `is ${String(wrong)}`,
    HEALTH,
    node({ replicas: [{ ...REPLICA, [field]: wrong }] }),
  );
}
for (const [field, wrong] of Object.entries({ appendOnly: 'yes', lastSave: NaN, failing: undefined })) {
  plant(
    `Persistence.${field}`,
    `is ${String(wrong)}`,
    HEALTH,
    node({ persistence: { ...PERSISTENCE, [field]: wrong } }),
  );
}
for (const [field, wrong] of Object.entries({
  node: '',
  connected: false,
  first: 'yes',
  error: new Error('none'),
})) {
  plant(
    `ConnectionChange.${field}`,
    `is ${String(wrong)}`,
    'reports only connection changes that happened',
    () => ({
      onConnectionChange: (listener) => {
        listener({ node: 'a', connected: true, first: true, [field]: wrong });
      },
    }),
  );
}

const handOver = ({ handOver: own }: StoreQueues): NonNullable<StoreQueues['handOver']> => {
  if (own === undefined) throw new Error('the memory store has it');
  return own;
};
const handedOver = (change: (reply: HandOverReply) => object): Bug =>
  queued((queues) => ({
    handOver: async (request, next) => {
      const reply = await handOver(queues)(request, next);
      return { ...reply, ...change(reply) };
    },
  }));
const ALONE = 'grants at once where the queue is empty, also when it is sent twice';
const BEHIND =
  'grants the lock to the waiters in the queue, and takes one entry behind them, also when it is sent twice';
plant(
  'StoreQueues.handOver',
  'only releases',
  ALONE,
  queued((_, store) => ({
    handOver: async (request) => ({
      released: await store.release(request),
      next: { granted: false, retryAfter: 1_000, holder: undefined },
    }),
  })),
);
plant(
  'NextOwner.owner',
  'is the former one',
  BEHIND,
  queued((queues) => ({
    handOver: (request, next) => handOver(queues)(request, { ...next, owner: request.owner }),
  })),
);
plant(
  'NextOwner.leaseTime',
  'is too short',
  ALONE,
  queued((queues) => ({
    handOver: (request, next) => handOver(queues)(request, { ...next, leaseTime: 100 }),
  })),
);
plant(
  'HandOverReply.released',
  'is always so',
  ALONE,
  handedOver(() => ({ released: 'released' })),
);
plant(
  'HandOverReply.next',
  'is always granted',
  BEHIND,
  handedOver(() => ({ next: { granted: true, fencingToken: 1 } })),
);
plant(
  'AcquireReply.rivals',
  'are said to be there',
  ALONE,
  handedOver(({ next }) => ({ next: { ...next, rivals: 'outside' } })),
);
plant(
  'AcquireReply.listen',
  'is said where there is a queue',
  BEHIND,
  handedOver(({ next }) => ({ next: { ...next, listen: true } })),
);
const SHARE = 'leaves subscribers to its release their share, and reports it';
plant(
  'QueueMessage.rivals',
  'are not told',
  SHARE,
  told(() => ({ rivals: 'none' })),
);
plant(
  'Rivals',
  'have a word of their own',
  SHARE,
  told(() => ({ rivals: 'others' })),
);
plant(
  'QueueMessage.listen',
  'is not told',
  SHARE,
  told(() => ({ listen: false })),
);

const transferring =
  (
    change: (request: TransferRequest) => Partial<TransferRequest>,
    answer: (reply: TransferReply) => object = () => ({}),
  ): Bug =>
  (store) => ({
    transfer: async (request) => {
      const reply = await store.transfer!({ ...request, ...change(request) });
      return { ...reply, ...answer(reply) };
    },
  });
/** Of all clients: the suite passes on with one, and looks with another. */
const former = new Set<string>();
const PASSED_ON = 'passes the hold of a plain lock on, under a greater token';
const ENDED = 'ends the hold of a plain lock that nothing renews';
const SENT_TWICE = 'a transfer of a plain lock that is sent twice';
const NOT_THERE = 'passes on no hold of a plain lock that is not there';
const ONE_OF_SEVERAL = 'passes the hold of a plain lock on to one of several owners';
plant(
  'LockStore.transfer',
  'gives the lock up, and takes it again',
  'wakes nothing that waits for a plain lock',
  (store) => ({
    transfer: async (request) => {
      const reply = await store.transfer!(request);
      if (!reply.granted) return reply;
      await store.release({ ...request, owner: request.next });
      const next = await store.acquire({ ...request, owner: request.next, queue: undefined });
      return { ...reply, ...next } as TransferReply;
    },
  }),
);
plant('LockStore.transfer', 'leaves the former owner its hold', PASSED_ON, (store) => {
  return {
    transfer: (request) => {
      former.add(`${request.name} ${request.owner}`);
      return store.transfer!(request);
    },
    renew: (holds) =>
      store
        .renew(holds)
        .map(async (state, n) =>
          former.has(`${holds[n]?.name ?? ''} ${holds[n]?.owner ?? ''}`) ? ('held' as const) : await state,
        ),
  };
});
plant('LockStore.transfer', 'is granted to all that ask', ONE_OF_SEVERAL, (store) => ({
  transfer: async (request) => {
    const reply = await store.transfer!(request);
    return reply.granted ? reply : { granted: true, fencingToken: 1, date: reply.date };
  },
}));
plant('LockStore.transfer', 'shortens the hold when it is sent again', SENT_TWICE, (store) => ({
  transfer: async (request) => {
    const [held] = store.renew([{ name: request.name, owner: request.next, leaseTime: 0 }]);
    const isRepeated = (await held) === 'held';
    const reply = await store.transfer!(request);
    if (!isRepeated) return reply;
    const owner = `${request.next}0`;
    await store.transfer!({ ...request, owner: request.next, next: owner });
    await store.transfer!({ ...request, owner });
    return reply;
  },
}));
plant(
  'TransferRequest.name',
  'is that of another lock',
  PASSED_ON,
  transferring(({ name }) => ({ name: `${name}:other` })),
);
plant('TransferRequest.owner', 'is any owner', NOT_THERE, (store) => ({
  transfer: async (request) => {
    const owner = (await store.inspect(request.name))?.holders[0]?.owner ?? request.owner;
    return await store.transfer!({ ...request, owner });
  },
}));
plant(
  'TransferRequest.next',
  'is another owner',
  PASSED_ON,
  transferring(({ next }) => ({ next: `${next}0` })),
);
plant(
  'TransferRequest.leaseTime',
  'does not end the hold sooner',
  ENDED,
  transferring(() => ({ leaseTime: 6_000 })),
);
plant(
  'TransferRequest.leastToken',
  'is not heeded',
  PASSED_ON,
  transferring(() => ({ leastToken: 1 })),
);
plant(
  'TransferRequest.queue',
  'is taken for that of a plain lock',
  'passes the hold of a fair lock on, under',
  transferring(() => ({ queue: undefined })),
);
plant(
  'TransferRequest.queue',
  'counts without its capacity',
  'passes on no hold for a lock of another kind, or of another capacity',
  transferring(({ queue }) => (queue?.kind === 'semaphore' ? { queue: { ...queue, capacity: 2 } } : {})),
);
plant(
  'TransferReply.granted',
  'is always so',
  NOT_THERE,
  transferring(
    () => ({}),
    () => ({ granted: true, fencingToken: 1 }),
  ),
);
plant(
  'TransferReply.fencingToken',
  'is another',
  SENT_TWICE,
  transferring(
    () => ({}),
    () => ({ fencingToken: Math.random() }),
  ),
);
plant(
  'TransferReply.state',
  'is always taken',
  NOT_THERE,
  transferring(
    () => ({}),
    () => ({ state: 'taken' }),
  ),
);
plant(
  'TransferReply.date',
  'is in seconds',
  PASSED_ON,
  transferring(
    () => ({}),
    ({ date }) => ({ date: date / 1_000 }),
  ),
);

const noting =
  (change: (periods: StorePeriods) => Partial<StorePeriods>): Bug =>
  (store) => ({ periods: { ...store.periods!, ...change(store.periods!) } });
const NOTED = 'notes for the holder that its work is done';
const NOT_NOTED = 'notes nothing for an owner that does not hold the lock';
plant('LockStore.periods', 'are those of each client', NOTED, () => ({
  periods: new MemoryLockStore().periods,
}));
plant('StorePeriods.remember', 'notes for any owner', NOT_NOTED, (store) => ({
  periods: {
    ...store.periods!,
    remember: async (request) => {
      const owner = (await store.inspect(request.name))?.holders[0]?.owner ?? request.owner;
      const state = await store.periods!.remember(request);
      await store.periods!.remember({ ...request, owner });
      return state;
    },
  },
}));
plant(
  'StorePeriods.recall',
  'is in seconds',
  NOTED,
  noting((periods) => ({
    recall: async (name) => {
      const since = await periods.recall(name);
      return since === undefined ? undefined : since / 1_000;
    },
  })),
);
plant(
  'RememberRequest.name',
  'is any',
  NOTED,
  noting((periods) => ({ recall: () => periods.recall('conformance:any') })),
);
plant(
  'RememberRequest.owner',
  'is not asked for',
  NOT_NOTED,
  noting(() => ({ remember: () => Promise.resolve('held') })),
);
plant(
  'RememberRequest.period',
  'is longer',
  NOTED,
  noting((periods) => ({ remember: (request) => periods.remember({ ...request, period: 6_000 }) })),
);

/** Each is a small change of the memory store. */
export const PLANTED_BUGS: readonly PlantedBug[] = bugs;
