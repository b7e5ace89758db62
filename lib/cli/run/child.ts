import { type ChildProcess, spawn } from 'node:child_process';
import { EXIT } from '../exit-code.js';
import { Marked } from './marked.js';
import { Family, Group, type Processes } from './processes.js';
import { codeOfSignal } from './signals.js';

/** A command that runs. */
export interface Child {
  /** The command and its processes, as far as signals are passed on. */
  readonly command: Processes;
  /** These, and processes that have left them: all processes that must end with the lease. */
  readonly everything: Processes;
  /** Its exit code; 128 and the number of the signal that has ended it. Rejects with NotStarted. */
  readonly ended: Promise<number>;
}

/** With the exit code of a shell if a command cannot be started. */
export class NotStarted extends Error {
  readonly exitCode: number;

  constructor(code = 'UNKNOWN') {
    super(code === 'ENOENT' ? 'the command is not found' : `the command cannot be run (${code})`);
    this.exitCode = code === 'ENOENT' ? EXIT.notFound : EXIT.notExecutable;
  }
}

/**
 * Starts a command with the streams of this process. With a terminal it stays in the process group that has it, so that keys
 * reach it and it may ask for a password. Without one it leads a group, so that all that it starts can be ended.
 * @param owner of the lease, by which `env` marks the processes of the command
 */
export function startChild(
  [command = '', ...args]: readonly string[],
  env: NodeJS.ProcessEnv,
  { hasTerminal, owner }: { hasTerminal: boolean; owner: string },
): Child {
  let child: ChildProcess;
  try {
    child = spawn(command, args, { env, stdio: 'inherit', detached: !hasTerminal });
  } catch (error) {
    // Some reasons are thrown, others are events. Shells do not find an empty name.
    const { code } = error as NodeJS.ErrnoException;
    return { ...NONE, ended: Promise.reject(new NotStarted(command === '' ? 'ENOENT' : code)) };
  }
  const ended = new Promise<number>((resolve, reject) => {
    child.once('error', ({ code }: NodeJS.ErrnoException) => {
      reject(new NotStarted(code));
    });
    child.once('exit', (code, signal) => {
      resolve(code ?? (signal === null ? EXIT.fault : codeOfSignal(signal)));
    });
  });
  const { pid } = child;
  if (pid === undefined) return { ...NONE, ended };
  const processes = hasTerminal ? new Family(pid, owner) : new Group(pid);
  return { command: processes, everything: new Marked(processes, pid, owner), ended };
}

const NOTHING: Processes = { signal: () => undefined, alive: () => false };
const NONE = { command: NOTHING, everything: NOTHING };
