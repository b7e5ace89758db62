import { Failure, usageFailure } from './command-failure.js';
import { COMMANDS } from './commands.js';
import { EXIT } from './exit-code.js';
import { COMMAND_HELP, HELP } from './help.js';
import { Screen } from './output/screen.js';
import { readVersion } from './version.js';

const NAME = 'nestjs-distributed-lock';

/** Runs one command. Resolves with the exit code; what goes wrong is one line on stderr. */
export async function cli(args: readonly string[], screen = new Screen()): Promise<number> {
  try {
    return await dispatch(args, screen);
  } catch (error) {
    const { message, exitCode } =
      error instanceof Failure ? error : (await import('./failure.js')).failureOf(error);
    screen.complain(`${NAME}: ${message}`);
    return exitCode;
  }
}

async function dispatch([word, ...rest]: readonly string[], screen: Screen): Promise<number> {
  const isHelp = word === 'help' || asksForHelp(word);
  const name = isHelp ? rest.find((one) => !asksForHelp(one)) : word;
  if (word === '--version' || word === '-v') {
    screen.print(readVersion());
    return EXIT.done;
  }
  if (name === undefined) {
    if (!isHelp) throw usageFailure(`a command is missing\n${HELP}`);
    screen.print(HELP);
    return EXIT.done;
  }
  const command = COMMANDS.get(name);
  if (command === undefined) throw await unknownCommand(name);
  if (isHelp || own(rest).some(asksForHelp)) {
    screen.print(COMMAND_HELP[name] ?? HELP);
    return EXIT.done;
  }
  // Loaded here, because checks of times bring Nest with them.
  const { parse } = await import('./arguments.js');
  const given = parse(rest, command, screen.environment);
  const { run } = await command.load();
  return await run(given, screen);
}

const asksForHelp = (word: string | undefined): boolean => word === '--help' || word === '-h';

/** Without the words after `--`: they may be a program with its own help, or a name. */
function own(rest: readonly string[]): readonly string[] {
  const end = rest.indexOf('--');
  return end < 0 ? rest : rest.slice(0, end);
}

/** The word is repeated only if it is one: an address may have slipped there. */
async function unknownCommand(word: string): Promise<Failure> {
  const { nearest } = await import('../runtime/nearest.js');
  const shown = /^[a-z-]{1,20}$/i.test(word) ? `"${word}"` : 'the first argument';
  const known = [...COMMANDS.keys()];
  const meant = nearest(word, known);
  const cure = meant === undefined ? `the commands are ${known.join(', ')}` : `did you mean ${meant}?`;
  return usageFailure(`${shown} is not a command: ${cure}`);
}
