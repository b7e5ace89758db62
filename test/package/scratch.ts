import { execFile } from 'node:child_process';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const here = fileURLToPath(new URL('.', import.meta.url));
export const root = join(here, '../..');

/** @throws with all that the program has written */
export async function run(cwd: string, program: string, args: string[], env = {}): Promise<string> {
  // Jest's own settings are not for the programs that it starts.
  const inherited = {
    ...process.env,
    NODE_OPTIONS: undefined,
    NODE_ENV: undefined,
    JEST_WORKER_ID: undefined,
  };
  const options = { cwd, env: { ...inherited, ...env }, maxBuffer: 10_000_000 };
  try {
    return (await promisify(execFile)(program, args, options)).stdout;
  } catch (error) {
    const { message, stdout = '' } = error as Error & { stdout?: string };
    // The message has what went to stderr.
    throw new Error(`${message}\n${stdout}`);
  }
}

export interface Packed {
  readonly filename: string;
  /** Bytes */
  readonly size: number;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string }[];
}

/** A directory outside of the repository, so that nothing of it is found by chance. */
export class Scratch {
  private constructor(readonly directory: string) {}

  static async make(): Promise<Scratch> {
    return new Scratch(await mkdtemp(join(tmpdir(), 'lock-package-')));
  }

  get tarball(): string {
    return join(this.directory, 'package.tgz');
  }

  /** What is published, before it is packed. */
  get contents(): string {
    return join(this.directory, 'contents');
  }

  async pack(): Promise<Packed> {
    await run(root, process.execPath, ['scripts/package/main.mjs', this.contents]);
    const args = ['pack', '--json', '--pack-destination', this.directory, this.contents];
    const [packed] = JSON.parse(await run(root, 'npm', args)) as [Packed];
    await cp(join(this.directory, packed.filename), this.tarball);
    return packed;
  }

  directoryOf(project: string): string {
    return join(this.directory, project);
  }

  /** Makes the application a project of its own, with the tarball installed. */
  async install(project: string, sources: readonly string[] = ['app', project]): Promise<void> {
    const directory = this.directoryOf(project);
    for (const source of sources) await cp(join(here, source), directory, { recursive: true });
    // The binary of another Node is put into its place by a script, which a surrounding npm may have turned off.
    const flags = [
      '--ignore-scripts=false',
      '--prefer-offline',
      '--no-audit',
      '--no-fund',
      '--no-package-lock',
    ];
    await run(directory, 'npm', ['install', ...flags, this.tarball]);
  }

  async remove(): Promise<void> {
    await rm(this.directory, { recursive: true, force: true });
  }
}
