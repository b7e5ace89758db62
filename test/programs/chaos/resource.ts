import { RedisServer } from '../../support/redis-server.js';

/**
 * What the locks protect: a counter per lock that checks fencing tokens. A reader shows its token as well, so that
 * nobody who read before it can write after it. The log holds every update that was accepted.
 */
export const SCRIPTS = {
  read: `
    local last = tonumber(redis.call('HGET', KEYS[1], 'token') or 0)
    if tonumber(ARGV[1]) < last then return -1 end
    redis.call('HSET', KEYS[1], 'token', ARGV[1])
    return tonumber(redis.call('HGET', KEYS[1], 'value') or 0)`,
  write: `
    local last = tonumber(redis.call('HGET', KEYS[1], 'token') or 0)
    if tonumber(ARGV[1]) < last then
      redis.call('INCR', KEYS[1] .. ':refused')
      return 0
    end
    redis.call('HSET', KEYS[1], 'token', ARGV[1], 'value', ARGV[2])
    redis.call('RPUSH', KEYS[1] .. ':log', ARGV[1] .. ' ' .. ARGV[3] .. ' ' .. ARGV[2])
    return 1`,
};

/** One update that the resource has accepted. */
export interface Update {
  readonly lock: string;
  readonly token: number;
  readonly from: number;
  readonly to: number;
}

export class Resource {
  private constructor(private readonly server: RedisServer) {}

  static async start(): Promise<Resource> {
    return new Resource(await RedisServer.start());
  }

  get url(): string {
    return this.server.url;
  }

  async ping(): Promise<void> {
    await this.server.client().ping();
  }

  async updates(lock: string): Promise<Update[]> {
    const log = await this.server.client().lrange(`${lock}:log`, 0, -1);
    return log.map((line) => {
      const [token = 0, from = 0, to = 0] = line.split(' ').map(Number);
      return { lock, token, from, to };
    });
  }

  /** How many writes came with a token that was too old. */
  async refused(lock: string): Promise<number> {
    return Number((await this.server.client().get(`${lock}:refused`)) ?? 0);
  }

  async stop(): Promise<void> {
    await this.server.stop();
  }
}
