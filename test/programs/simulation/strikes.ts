import type { FaultInterval, Severity } from '../chaos/history.js';
import { Random } from '../chaos/random.js';
import type { Cast } from './cast.js';
import type { FaultKind, PlannedFault } from './plan.js';
import type { Direction, Link } from './world/link.js';

const TEN_MINUTES = 600_000;
/** ms for which a hold is looked out for. */
const LOOKOUT = 2_000;

export interface Struck {
  readonly severity: Severity;
  readonly process?: string;
  readonly lock?: string;
  /** Ends it. */
  readonly heal?: () => void;
}

/** What each fault does. Undefined where something else is in its way. */
type Strike = (cast: Cast, random: Random, lasts: number) => Struck | undefined | Promise<Struck | undefined>;

/** A strike on the way between a process and a server, or between all and one, or between one and all. */
const onLinks =
  (
    strike: (link: Link, random: Random, lasts: number) => (() => void) | undefined,
    severity: Severity = 'outage',
  ): Strike =>
  (cast, random, lasts) => {
    const links = cast.linksOf(random);
    const heals = links.map((link) => strike(link, random, lasts));
    return {
      severity,
      heal: () => {
        for (const heal of heals) heal?.();
      },
    };
  };

const silence = (direction: Direction, link: Link, lasts: number): (() => void) => {
  link.silentUntil[direction] = link.world.time + lasts;
  return () => {
    // A connection whose other end has been silent for long is often given up before it speaks again.
    if (link.random.next() < 0.5) link.cut();
  };
};

/** @returns ends it */
function cutOff(links: readonly Link[]): () => void {
  for (const link of links) {
    link.refuses = true;
    link.cut();
  }
  return () => {
    for (const link of links) link.refuses = false;
  };
}

/**
 * Kills so many servers of a hold that no majority is left that knows it.
 * @param isBare only a hold of the first process that no further server knows. It does not see the restarts.
 */
function killHold(isBare: boolean): Strike {
  return async (cast, random) => {
    const { world } = cast;
    // A hold that a majority has just granted, so that it is renewed as late as possible.
    const lookedUntil = world.time + LOOKOUT;
    const least = cast.servers.length / 2;
    const seen = new Set(cast.holds().map(({ owner }) => owner));
    while (world.time < lookedUntil) {
      await world.sleep(2);
      if (!cast.isWhole) continue;
      const fresh = cast
        .holds()
        .find(
          ({ owner, servers }) =>
            !seen.has(owner) && servers.length > least && (!isBare || servers.length < least + 1),
        );
      if (fresh === undefined) continue;
      const majority = fresh.servers.slice(0, Math.floor(least) + 1);
      const comeBack = isBare ? cutOff(cast.linksTo(0)) : undefined;
      cast.strikeAll();
      for (const server of majority) server.kill();
      world.after(random.between(1, 60), () => {
        for (const server of majority) server.start();
      });
      return {
        severity: 'outage',
        heal: () => {
          for (const server of cast.servers) cast.healed(server);
          comeBack?.();
        },
      };
    }
    return undefined;
  };
}

export const STRIKES: Record<FaultKind, Strike> = {
  'process killed': (cast, random) => {
    const worker = random.between(0, cast.size - 1);
    const process = cast.kill(worker);
    if (process === undefined) return undefined;
    return {
      severity: 'outage',
      process,
      heal: () => {
        cast.hire(worker);
      },
    };
  },
  'process paused': (cast, random, lasts) => {
    const member = cast.pick(random);
    member?.actor.pause(lasts);
    return member && { severity: 'outage', process: member.name };
  },
  'process stalls in a turn': (cast, random, lasts) => {
    const member = cast.pick(random);
    if (member !== undefined) member.actor.stall = { looks: random.between(1, 12), time: lasts };
    return member && { severity: 'outage', process: member.name };
  },
  'process clock stepped': (cast, random) => {
    const member = cast.pick(random);
    if (member === undefined) return undefined;
    member.actor.step = random.pick([-TEN_MINUTES, TEN_MINUTES, -3, 40]);
    return {
      severity: 'harmless',
      heal: () => {
        member.actor.step = 0;
      },
    };
  },
  'server paused': (cast, random, lasts) => {
    const server = cast.strikeServer(random);
    server?.actor?.pause(lasts);
    return (
      server && {
        severity: 'outage',
        heal: () => {
          cast.healed(server);
        },
      }
    );
  },
  'server killed, restarted empty': (cast, random) => {
    const server = cast.strikeServer(random);
    server?.kill();
    if (server === undefined) return undefined;
    return {
      severity: cast.forgives ? 'outage' : 'loss',
      heal: () => {
        server.start();
        cast.healed(server);
      },
    };
  },
  'server killed, restarted with its data': (cast, random) => {
    const server = cast.strikeServer(random);
    server?.kill();
    if (server === undefined) return undefined;
    return {
      severity: 'outage',
      heal: () => {
        server.start(true);
        cast.healed(server);
      },
    };
  },
  'scripts forgotten': (cast, random) => {
    random.pick(cast.servers).forgetScripts?.();
    return { severity: 'harmless' };
  },
  'memory full': (cast, random) => {
    const server = random.pick(cast.servers);
    server.fill?.(true);
    return {
      severity: 'outage',
      heal: () => {
        server.fill?.(false);
      },
    };
  },
  'server clock stepped and returned': (cast, random) => {
    const server = random.pick(cast.servers);
    const { actor } = server;
    if (actor?.step !== 0) return undefined;
    actor.step = random.pick([-TEN_MINUTES, TEN_MINUTES]);
    // To a server that counts a lease by its wall clock, a step forward is the end of every lease.
    return {
      severity: 'loss',
      heal: () => {
        actor.step = 0;
        server.freeTheFuture?.(60_000);
      },
    };
  },
  'majority of a hold killed, restarted empty': killHold(false),
  'bare majority of a hold killed, its holder out of reach': killHold(true),
  'minority out of reach of the first process': (cast) => {
    const links = cast.linksTo(0).slice(Math.floor(cast.servers.length / 2) + 1);
    return { severity: 'outage', heal: cutOff(links) };
  },
  'data lost': (cast, random) => {
    const server = cast.strikeServer(random);
    if (server === undefined) return undefined;
    server.forget();
    cast.healed(server);
    return { severity: 'loss' };
  },
  'lock lost': (cast, random) => {
    const lock = random.pick(cast.plan.locks).name;
    for (const server of cast.servers) server.forget(lock);
    return { severity: 'loss', lock };
  },
  'connections cut': onLinks((link) => {
    link.cut();
    return undefined;
  }),
  'out of reach': onLinks((link) => cutOff([link])),
  slow: onLinks((link, random) => {
    const direction = random.pick(['there', 'back'] as const);
    link.slow[direction] = random.between(5, 400);
    return () => {
      link.slow[direction] = 0;
    };
  }),
  'requests lost': onLinks((link, _, lasts) => silence('there', link, lasts)),
  'replies lost': onLinks((link, _, lasts) => silence('back', link, lasts)),
  'messages dropped': onLinks((link) => {
    link.dropsMessages = true;
    return () => {
      link.dropsMessages = false;
    };
  }),
  // As if their removal came late: what a process has told of its waits outlives them.
  'notes of waits stay': ({ servers }) => {
    for (const server of servers) server.keepNotes?.(true);
    return {
      severity: 'harmless',
      heal: () => {
        for (const server of servers) server.keepNotes?.(false);
      },
    };
  },
  'server clock stepped': (cast, random) => {
    const server = random.pick(cast.servers);
    if (server.actor === undefined) return undefined;
    server.actor.step += random.pick([-TEN_MINUTES, TEN_MINUTES, -2_000, 2_000]);
    return { severity: cast.forgives ? 'outage' : 'harmless' };
  },
  failover: (cast) => cast.failOver(),
};

/** Strikes as planned. @returns the intervals, when all is healed */
export async function strikeAll(faults: readonly PlannedFault[], cast: Cast): Promise<FaultInterval[]> {
  const { world } = cast;
  const begin = world.time;
  const intervals: FaultInterval[] = [];
  await Promise.all(
    faults.map(async ({ at, lasts, kind, seed }) => {
      await world.sleep(begin + at - world.time);
      const from = world.time;
      const struck = await STRIKES[kind](cast, new Random(seed), lasts);
      if (struck === undefined) return;
      const { severity, process, lock, heal } = struck;
      await world.sleep(lasts);
      heal?.();
      intervals.push({ fault: kind, severity, from, to: world.time + 1, process, lock });
    }),
  );
  return intervals;
}
