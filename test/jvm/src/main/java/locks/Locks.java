package locks;

import java.util.concurrent.TimeUnit;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** What each verb of the protocol does with Redisson. Times are ms. A lease of -1 is renewed by the watchdog. */
final class Locks {
  private final RedissonClient redisson;

  Locks(RedissonClient redisson) {
    this.redisson = redisson;
  }

  /** @return JSON */
  Object run(Command command) throws InterruptedException {
    return switch (command.verb()) {
      case "now" -> Clock.now();
      case "loop" -> loop(command);
      default -> run(command, redisson.getLock(command.text(0)));
    };
  }

  private static Object run(Command command, RLock lock) throws InterruptedException {
    return switch (command.verb()) {
      // <name> <lease>: when it was granted.
      case "lock" -> {
        lock.lock(command.number(1), TimeUnit.MILLISECONDS);
        yield Clock.now();
      }
      // <name>: ends with an error when the thread is interrupted. When it was granted.
      case "lockInterruptibly" -> {
        lock.lockInterruptibly();
        yield Clock.now();
      }
      // <name> <wait> <lease>
      case "tryLock" -> lock.tryLock(command.number(1), command.number(2), TimeUnit.MILLISECONDS);
      // <name>: just before it was sent.
      case "unlock" -> {
        double released = Clock.now();
        lock.unlock();
        yield released;
      }
      case "forceUnlock" -> lock.forceUnlock();
      case "isLocked" -> lock.isLocked();
      case "isHeld" -> lock.isHeldByCurrentThread();
      case "holdCount" -> lock.getHoldCount();
      case "remainTimeToLive" -> lock.remainTimeToLive();
      default -> throw new IllegalArgumentException("No such verb: " + command.verb());
    };
  }

  /**
   * {@code loop <kind> <name> <threads> <hold> <duration> [counter [times [wait]]]}; the answer is {@link Loop#run}'s. Each
   * thread comes so many times at most, and waits so long each time: without limits where these are missing.
   */
  private Object loop(Command command) throws InterruptedException {
    String name = command.text(1);
    RLock lock =
        switch (command.text(0)) {
          case "plain" -> redisson.getLock(name);
          case "fair" -> redisson.getFairLock(name);
          case "spin" -> redisson.getSpinLock(name);
          default -> throw new IllegalArgumentException("No such kind: " + command.text(0));
        };
    Hold hold =
        command.arguments().size() > 5
            ? Hold.counting(redisson, command.text(5))
            : Hold.lasting(command.number(3));
    long times = command.arguments().size() > 6 ? command.number(6) : Long.MAX_VALUE;
    long patience = command.arguments().size() > 7 ? command.number(7) : Loop.FOREVER;
    return new Loop(lock, hold, command.number(4), times, patience).run((int) command.number(2));
  }
}
