import { Redis } from 'ioredis';

/** How often each command ran, those inside scripts included; `total` counts them all. */
export interface CommandCount {
  readonly total: number;
  readonly calls: ReadonlyMap<string, number>;
}

/** Reads the command statistics of a Redis server. */
export class CommandCounter {
  private constructor(private readonly redis: Redis) {}

  /** Rejects when no server answers. */
  static async connect(url: string): Promise<CommandCounter> {
    const redis = new Redis(url, {
      lazyConnect: true,
      retryStrategy: () => null,
      connectTimeout: 3_000,
      commandTimeout: 3_000,
    });
    let reason: Error | undefined;
    redis.on('error', (error) => (reason = error));
    try {
      await redis.connect();
    } catch (error) {
      const { host, port } = redis.options;
      const cause = reason ?? (error as Error);
      throw new Error(`No Redis answers at ${String(host)}:${String(port)} (${cause.message})`, { cause });
    }
    return new CommandCounter(redis);
  }

  /** What the server ran while `work` did. */
  async during<T>(work: () => Promise<T>): Promise<[T, CommandCount]> {
    const before = await this.read();
    const result = await work();
    const after = await this.read();
    const calls = new Map<string, number>();
    for (const [command, count] of after.calls) {
      const grown = count - (before.calls.get(command) ?? 0);
      // Our own question is no part of the work, nor of the total below.
      if (grown > 0 && command !== 'info') calls.set(command, grown);
    }
    return [result, { total: after.total - before.total - 1, calls }];
  }

  close(): void {
    this.redis.disconnect();
  }

  private async read(): Promise<CommandCount> {
    const text = await this.redis.info('all');
    const calls = new Map<string, number>();
    for (const [, command, count] of text.matchAll(/^cmdstat_(.+?):calls=(\d+)/gm)) {
      calls.set(command!, Number(count));
    }
    return { total: Number(/^total_commands_processed:(\d+)/m.exec(text)?.[1]), calls };
  }
}
