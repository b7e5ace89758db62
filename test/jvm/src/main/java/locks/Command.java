package locks;

import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

/** A line of the protocol: {@code <id> <thread> <verb> <argument>...}, each percent-encoded. */
record Command(String id, String thread, String verb, List<String> arguments) {
  static Command parse(String line) {
    List<String> words =
        Arrays.stream(line.split(" ")).map(word -> URLDecoder.decode(word, StandardCharsets.UTF_8)).toList();
    return new Command(words.get(0), words.get(1), words.get(2), words.subList(3, words.size()));
  }

  String text(int index) {
    return arguments.get(index);
  }

  long number(int index) {
    return Long.parseLong(arguments.get(index));
  }

  /** @param json what the command gave */
  String answer(Object json) {
    return id + " = " + json;
  }

  String failure(Throwable error) {
    return id + " ! " + URLEncoder.encode(error.toString(), StandardCharsets.UTF_8);
  }
}
