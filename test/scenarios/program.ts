import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const PACKAGE = fileURLToPath(new URL('../..', import.meta.url));

/**
 * Runs a module with the built package in a process of its own, and gives back what it printed.
 * @param patience ms after which it is killed, and the promise rejects
 * @param bundled in one file with its dependencies, which starts faster
 */
export async function runProgram(
  source: string,
  {
    env = {},
    patience = 60_000,
    bundled = true,
  }: { env?: Record<string, string>; patience?: number; bundled?: boolean } = {},
): Promise<string> {
  const bundle = bundled ? process.env.LOCK_TEST_PACKAGE : undefined;
  const from = bundle ?? 'nestjs-distributed-lock';
  const imports = `import 'reflect-metadata'; import { LockService } from '${from}';`;
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '--eval', `${imports}\n${source}`],
    { cwd: PACKAGE, env: { ...process.env, ...env }, timeout: patience, killSignal: 'SIGKILL' },
  );
  return stdout.trim();
}
