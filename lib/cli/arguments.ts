import { parseArgs } from 'node:util';
import { nearest } from '../runtime/nearest.js';
import { usageFailure } from './command-failure.js';
import type { Command } from './command.js';
import { Given } from './given.js';

/** @throws Failure with the exit code of a wrong call */
export function parse(args: readonly string[], command: Command, environment: Given['environment']): Given {
  const end = command.runsProgram === true ? args.indexOf('--') : -1;
  const own = end < 0 ? args : args.slice(0, end);
  let program = end < 0 ? [] : args.slice(end + 1);
  const types = Object.fromEntries(
    Object.entries(command.options).map(([name, type]) => [
      name,
      { type: type === 'flag' ? ('boolean' as const) : ('string' as const) },
    ]),
  );
  const { tokens } = parseArgs({
    args: [...own],
    options: types,
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const names: string[] = [];
  const options = new Map<string, string>();
  for (const token of tokens) {
    if (token.kind === 'positional') names.push(token.value);
    if (token.kind !== 'option') continue;
    const { name, value, inlineValue } = token;
    const type = Object.hasOwn(command.options, name) ? command.options[name] : undefined;
    if (type === undefined) throw unknownOption(token.rawName, command);
    if (options.has(name)) throw usageFailure(`--${name} is given more than once`);
    if (type === 'flag' && value !== undefined) throw usageFailure(`--${name} takes no value`);
    // `--url --json` lacks a value, and a value that begins so needs a sign of equality. A keyPrefix may be empty.
    const isMissing = value === undefined || (value === '' && name !== 'prefix');
    if (type === 'value' && (isMissing || (!inlineValue && value.startsWith('-'))))
      throw usageFailure(`--${name} needs a value`);
    options.set(name, value ?? '');
  }
  if (names.length === 0 && program[1] === '--') {
    // A name that begins like an option: run -- -name -- command
    names.push(...program.slice(0, 1));
    program = program.slice(2);
  }
  assertArguments(names, command);
  return new Given(names, options, program, environment);
}

/** The name of an option is repeated only if it is a plain word: it may be a value that slipped there. */
function unknownOption(raw: string, { options }: Command): Error {
  const shown = /^--?[a-z][a-z-]{0,20}$/.test(raw) ? raw : 'one of the options';
  const meant = nearest(raw.replace(/^-+/, ''), Object.keys(options));
  const cure =
    meant === undefined ? 'see --help; put names that start with - after --' : `did you mean --${meant}?`;
  return usageFailure(`${shown} is not an option of this command: ${cure}`);
}

function assertArguments(names: readonly string[], command: Command): void {
  const missing = command.arguments.slice(names.length).find((name) => !name.startsWith('['));
  if (missing !== undefined) throw usageFailure(`${missing} is missing`);
  if (names.length <= command.arguments.length) return;
  const cure = command.runsProgram === true ? ': put the command to run after --' : '';
  throw usageFailure(`there are more arguments than this command takes${cure}`);
}
