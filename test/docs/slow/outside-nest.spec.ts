import { describe, expect, it } from '@jest/globals';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { runProgram } from '../../scenarios/program.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { readPage } from '../markdown.js';
import { serverOfAll } from '../../support/test-servers.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const { blocks } = readPage(root, 'docs/guide/recipes/outside-nest.md');
const [script = '', worker = '', command = ''] = blocks.map(({ code }) => code);

describe('The programs of the page about programs outside of Nest', () => {
  const environment = TestEnvironment.ofAll();
  const server = serverOfAll();

  /** Runs a block in a process of its own, which is killed when it does not end by itself. */
  async function run(block: string, before = ''): Promise<string[]> {
    const code = block
      .replace('redis://localhost:6379', server.url)
      .replace(/import \{(.*)\} from 'nestjs-distributed-lock';/, (_, names: string) => {
        const others = names.split(',').filter((name) => name.trim() !== 'LockService');
        return `import {${others.join()}} from '${process.env.LOCK_TEST_PACKAGE ?? 'nestjs-distributed-lock'}';`;
      });
    const { outputText } = ts.transpileModule(
      `const step = async (name: string) => console.log(name);\n${before}\n${code}`,
      {
        compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext },
      },
    );
    return (await runProgram(outputText)).split('\n');
  }

  it('the script does its work and ends', async () => {
    expect(await run(script)).toEqual(['migrate orders', 'migrate stock']);
  });

  it('the worker does its work and ends', async () => {
    expect(await run(worker)).toEqual(['job 7', 'job 8']);
  });

  it('the worker that waits is ended by SIGTERM', async () => {
    const locks = environment.service({ connection: server.url });
    await locks.using('job:7', async () => {
      expect(await run(worker, "setTimeout(() => process.kill(process.pid, 'SIGTERM'), 1_000);")).toEqual([
        '',
      ]);
    });
  });

  it('the command does its work and ends, or says what is in the way', async () => {
    expect(await run(command)).toEqual(['import']);
    const locks = environment.service({ connection: server.url });
    await locks.using('import', async (lease) => {
      await expect(run(command)).rejects.toMatchObject({
        code: 75,
        stderr: expect.stringMatching(`^The lock "import" is busy.*: held by ${lease.owner}`),
      });
    });
  });
});
