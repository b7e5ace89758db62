import type { Lua } from '../programs/simulation/servers/redis/lua.js';
import { RedisServer } from '../programs/simulation/servers/redis/redis-server.js';
import type { World } from '../programs/simulation/world/world.js';

/** A Redis server of the world, which runs the real scripts. */
export class WorldServer {
  readonly redis: RedisServer;

  constructor(
    readonly world: World,
    readonly name: string,
    lua: Lua,
    hasReplica: boolean,
  ) {
    this.redis = new RedisServer(world, name, lua, (world.random.next() - 0.5) * 1_000, hasReplica);
  }

  /** How many scripts clients have run. */
  get commands(): number {
    return this.redis.commands;
  }

  /** All keys there are, but the counters of fencing tokens, which stay for an hour. */
  get keys(): readonly string[] {
    return this.redis.left.locks;
  }

  pause(time: number): void {
    this.redis.actor?.pause(time);
  }

  /** Ends at once, and with it all connections. */
  crash(): void {
    this.redis.kill();
  }

  /** Begins again after a crash, with what it had written down or with nothing. */
  restart({ empty = false } = {}): void {
    this.redis.start(!empty);
  }

  /** FLUSHALL. */
  flush(): void {
    this.redis.forget();
  }

  /** DEL of a key. */
  delete(key: string): void {
    this.redis.forget(key);
  }

  /** SCRIPT FLUSH. */
  forgetScripts(): void {
    this.redis.forgetScripts();
  }

  /** The memory is full, or is no longer. */
  fill(full = true): void {
    this.redis.fill(full);
  }

  /** From now on its replica gets nothing. */
  isolate(): void {
    this.redis.isolate();
  }

  /** Its replica takes its place, with what it has got, and with a clock that is so many ms ahead of the former one. */
  failOver(ahead = 0): void {
    this.redis.failOver(ahead);
  }
}
