package locks;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.redisson.Redisson;
import org.redisson.config.Config;

/**
 * A process that takes Redisson's locks at the word of its parent: commands on the standard input, answers on the
 * standard output, one a line. A thread of a command's is one thread here, which is an owner to Redisson.
 */
public final class Worker {
  private final Map<String, ExecutorService> executors = new HashMap<>();
  private final Map<String, Thread> threads = new ConcurrentHashMap<>();
  private final PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
  private final Locks locks;

  private Worker(Locks locks) {
    this.locks = locks;
  }

  /** Arguments: the URL of the server, and Redisson's lockWatchdogTimeout in ms. */
  public static void main(String[] arguments) throws IOException {
    Config config = new Config();
    config.setLockWatchdogTimeout(Long.parseLong(arguments[1]));
    // As many as the callers of a test need. The defaults are for a server of a process that has no neighbours.
    config.useSingleServer().setAddress(arguments[0]).setConnectionMinimumIdleSize(4);
    new Worker(new Locks(Redisson.create(config))).serve();
    // The parent has gone. Threads that wait for a lock are not waited for.
    Runtime.getRuntime().halt(0);
  }

  private void serve() throws IOException {
    answers.println("ready");
    var commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = commands.readLine(); line != null; line = commands.readLine()) {
      Command command = Command.parse(line);
      // What a thread does now ends by it, so it does not come after that.
      if (command.verb().equals("interrupt")) answers.println(interrupt(command));
      else executorOf(command.thread()).execute(() -> answers.println(answer(command)));
    }
  }

  private ExecutorService executorOf(String thread) {
    return executors.computeIfAbsent(
        thread,
        name ->
            Executors.newSingleThreadExecutor(
                work -> {
                  threads.put(name, new Thread(work));
                  return threads.get(name);
                }));
  }

  private String interrupt(Command command) {
    threads.get(command.thread()).interrupt();
    return command.answer(true);
  }

  private String answer(Command command) {
    try {
      return command.answer(locks.run(command));
    } catch (Exception error) {
      return command.failure(error);
    }
  }
}
