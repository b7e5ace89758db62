package locks;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RLock;

/**
 * Threads that come back for a lock as soon as they were served: for a time, and so many times at most. Each waits so long
 * for a turn, and goes without it then. Times are ms.
 */
record Loop(RLock lock, Hold hold, long duration, long times, long patience) {
  /** A wait without an end. */
  static final long FOREVER = -1;

  /** @return for each thread its turns, each as [asked, granted, released] in ms of {@link Clock} */
  List<List<List<Double>>> run(int threads) throws InterruptedException {
    ExecutorService callers = Executors.newFixedThreadPool(threads);
    try {
      double end = Clock.now() + duration;
      Callable<List<List<Double>>> caller = () -> turns(end);
      List<List<List<Double>>> turns = new ArrayList<>();
      for (Future<List<List<Double>>> done : callers.invokeAll(Collections.nCopies(threads, caller)))
        turns.add(done.get());
      return turns;
    } catch (ExecutionException error) {
      throw new IllegalStateException(error.getCause());
    } finally {
      callers.shutdown();
    }
  }

  private List<List<Double>> turns(double end) throws InterruptedException {
    List<List<Double>> turns = new ArrayList<>();
    for (long time = 0; time < times; time++) {
      double asked = Clock.now();
      if (asked >= end) break;
      if (patience == FOREVER) lock.lock();
      else if (!lock.tryLock(patience, TimeUnit.MILLISECONDS)) continue;
      double granted = Clock.now();
      double released;
      try {
        hold.run();
      } finally {
        released = Clock.now();
        lock.unlock();
      }
      turns.add(List.of(asked, granted, released));
    }
    return turns;
  }
}
