import { expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));

const asModule = (code: string) => `data:text/javascript,${encodeURIComponent(code)}`;

/** Prints the address of each module that is asked for. */
const hook = asModule(`
  import { writeSync } from 'node:fs';
  export async function resolve(specifier, context, next) {
    const resolved = await next(specifier, context);
    writeSync(1, resolved.url + '\\n');
    return resolved;
  }`);

it('The root of the package loads neither the whole framework nor an optional peer', () => {
  const watch = asModule(`import { register } from 'node:module'; register(${JSON.stringify(hook)});`);
  const { status, stdout } = spawnSync(process.execPath, ['--import', watch, 'dist/index.js'], {
    cwd: root,
    encoding: 'utf8',
  });
  const loaded = stdout.split('\n');
  const packageFile = (name: string) => loaded.some((url) => url.includes(`/node_modules/${name}`));
  expect({
    status,
    common: packageFile('@nestjs/common/index.js'),
    core: packageFile('@nestjs/core/index.js'),
    terminus: packageFile('@nestjs/terminus/'),
    telemetry: packageFile('@opentelemetry/'),
  }).toEqual({ status: 0, common: true, core: false, terminus: false, telemetry: false });
});
