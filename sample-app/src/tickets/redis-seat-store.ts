import { ServiceUnavailableException, type OnApplicationShutdown } from '@nestjs/common';
import { Redis } from 'ioredis';
import { SeatStore } from './seat-store.js';

/**
 * For any number of instances. It deliberately reads and writes in two commands, as most business code does: an
 * INCR would need no lock, but has no room for a payment in between.
 */
export class RedisSeatStore extends SeatStore implements OnApplicationShutdown {
  private readonly redis: Redis;

  constructor(
    url: string,
    private readonly key: string,
  ) {
    super();
    this.redis = new Redis(url, {
      // A dead Redis is to become an answer, not a request that hangs.
      commandTimeout: 1_000,
      disconnectTimeout: 100,
      // A command fails with its connection and is not sent again on the next one: another buyer may have the lock by
      // then, and a late write would sell a seat again.
      maxRetriesPerRequest: 0,
      retryStrategy: () => 100,
    });
    // Without a listener ioredis prints every failed attempt to connect. LockService logs the outage once.
    this.redis.on('error', () => undefined);
  }

  async sold(): Promise<number> {
    return Number(await this.answer(this.redis.get(this.key)));
  }

  async setSold(count: number): Promise<void> {
    await this.answer(this.redis.set(this.key, count));
  }

  onApplicationShutdown(): void {
    this.redis.disconnect();
  }

  private async answer<T>(reply: Promise<T>): Promise<T> {
    try {
      return await reply;
    } catch (cause) {
      throw new ServiceUnavailableException('The seats cannot be read now, try again later', { cause });
    }
  }
}
