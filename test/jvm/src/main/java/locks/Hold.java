package locks;

import org.redisson.api.RBucket;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.LongCodec;

/** What a caller does while it has the lock. */
interface Hold {
  void run() throws InterruptedException;

  /** @param time ms; 0 does nothing */
  static Hold lasting(long time) {
    return () -> {
      if (time > 0) Thread.sleep(time);
    };
  }

  /** Counts up by reading and writing, so that two holders at a time lose a count. */
  static Hold counting(RedissonClient redisson, String key) {
    RBucket<Long> counter = redisson.getBucket(key, LongCodec.INSTANCE);
    return () -> {
      Long count = counter.get();
      counter.set(count == null ? 1 : count + 1);
    };
  }
}
