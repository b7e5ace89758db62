import type { Redis } from 'ioredis';
import { monotonicTime, wallTime } from '../../../runtime/runtime.js';
import type { NodeHealth } from '../../../store/store-health.js';
import type { Server } from '../connection/deployment.js';
import { within } from '../connection/bounded.js';
import { isWithheld, NODE_OF_CLUSTER, reasonOf } from '../connection/redis-errors.js';
import { parseInfo, serverInfo } from './server-info.js';
import { FULL, type Finding } from './trial.js';

/** ms for which a server without a connection may get one: the longest pause between two attempts. */
const NEXT_ATTEMPT = 750;

/**
 * Asks one server for its health. Never rejects, and is bounded as every command is.
 * @param subscriber the subscriptions for its messages, if there are any
 * @param attempt tries to take a lock there
 * @param asCluster the connection knows the other nodes of the server's cluster
 */
export async function nodeHealth(
  connection: Server,
  subscriber: { obstacle(): Promise<unknown> } | undefined,
  attempt: (() => Promise<Finding>) | undefined,
  asCluster: boolean,
): Promise<NodeHealth> {
  const { node } = connection;
  // A probe waits for a second or two, and nothing else would be answered, either.
  if (connection.isDown && !(await isBack(connection)))
    return { node, status: 'down', latency: undefined, error: reasonOf(connection.outage()) };
  // All are sent at once, so that a server that is gone is waited for once.
  const [answer, info, clockOffset, messages, found, sentinels, unwatched] = await Promise.all([
    ping(connection),
    serverInfo(connection).catch(() => parseInfo('')),
    clockOffsetOf(connection),
    subscriber?.obstacle(),
    attempt?.(),
    asCluster ? undefined : unaskedSentinels(connection),
    asCluster ? undefined : failoverIsMissed(connection),
  ]);
  const { refusesWrites, full, inCluster, ...told } = info;
  const isSubscribed = subscriber && messages === undefined;
  const report = { node, latency: answer.latency, ...told, clockOffset, subscriber: isSubscribed, sentinels };
  const obstacle =
    answer.error ??
    refusesWrites ??
    (inCluster && !asCluster ? NODE_OF_CLUSTER : found?.status === 'down' ? found.error : undefined);
  if (obstacle !== undefined) return { ...report, status: 'down', error: obstacle };
  const lack = full
    ? FULL.error
    : (found?.error ??
      (isSubscribed === false ? `${NO_MESSAGES}: ${reasonOf(messages)}` : undefined) ??
      (unwatched === true ? NO_WATCH : undefined));
  return { ...report, status: lack === undefined ? 'up' : 'degraded', error: lack };
}

const NO_MESSAGES = 'its messages do not come through, so waiters poll';
const NO_WATCH = 'no connection to a sentinel comes about, so a failover would be missed';

const isBack = (connection: Server): Promise<boolean> =>
  within(NEXT_ATTEMPT, () => ping(connection)).then(
    ({ error }) => error === undefined,
    () => false,
  );

interface Answer {
  readonly latency: number | undefined;
  readonly error: string | undefined;
}

async function ping(connection: Server): Promise<Answer> {
  const asked = monotonicTime();
  try {
    await connection.send((client) => client.ping());
  } catch (error) {
    // A refusal is an answer, too.
    if (!isWithheld(error)) {
      return { latency: undefined, error: reasonOf(error) };
    }
  }
  return { latency: monotonicTime() - asked, error: undefined };
}

/** How many sentinels watch a server over whose connection no sentinel is asked; undefined if none does, or that is not told. */
async function unaskedSentinels(connection: Server): Promise<number | undefined> {
  try {
    return await connection.send(async (client) => {
      const { sentinels, Connector } = client.options;
      if (sentinels != null || Connector !== undefined) return undefined;
      // Each sentinel listens there for the others.
      const [, count] = await client.pubsub('NUMSUB', '__sentinel__:hello');
      return Number(count) > 0 ? Number(count) : undefined;
    });
  } catch {
    return undefined;
  }
}

/** The private part of a client of ioredis that watches for a failover. */
interface Watching {
  readonly failoverDetector?: { readonly sentinels: readonly { readonly client: Redis }[] } | null;
}

/** The sentinels' messages that ioredis waits for. */
const FAILOVERS = '+switch-master';

/**
 * ioredis does not report that all its connections that watch are gone, or refused, as after another password, or may not
 * subscribe. ioredis gives a subscription up at a refusal, so the question renews it.
 */
const failoverIsMissed = (connection: Server): Promise<boolean> =>
  connection
    .send(async (client) => {
      const { failoverDetector } = (Reflect.get(client, 'connector') ?? {}) as Watching;
      const watching = failoverDetector?.sentinels ?? [];
      // One that hears of a failover is enough: another sentinel may stand still, and not answer.
      const heard = Promise.any(
        watching.map(async ({ client: { status }, client: watcher }) => {
          if (/^(reconnecting|close|end)$/.test(status)) throw new Error(status);
          if (status === 'ready') await watcher.subscribe(FAILOVERS);
        }),
      );
      return await heard.then(
        () => false,
        () => watching.length > 0,
      );
    })
    .catch(() => false);

/** Compares wall clock with wall clock, for people to read. No lock depends on either. */
async function clockOffsetOf(connection: Server): Promise<number | undefined> {
  let sentAt = NaN;
  try {
    const [seconds, microseconds] = await connection.send((client) => {
      // The time for connecting is none of the way of the command.
      sentAt = wallTime();
      return client.time();
    });
    const halfway = (sentAt + wallTime()) / 2;
    return Math.round(Number(seconds) * 1_000 + Number(microseconds) / 1_000 - halfway);
  } catch {
    return undefined;
  }
}
