import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

/** What publishes on the tracing channels, as if it had never been written. */
const NOTHING = `
  export const areAcquisitionsTraced = () => false;
  export const traceHold = () => undefined;
  export class AcquisitionTrace {}
`;

/** Another copy of the build, beside which the real one can be measured. */
export async function withoutChannels(use) {
  // Below node_modules, where it finds the peers and no tool looks for sources.
  const directory = await mkdtemp(here('../../../../node_modules/.lock-without-channels-'));
  try {
    await cp(here('../../../../dist'), directory, { recursive: true });
    await writeFile(join(directory, 'package.json'), '{ "type": "module" }');
    await writeFile(join(directory, 'core/tracing.js'), NOTHING);
    return await use(await import(pathToFileURL(join(directory, 'index.js')).href));
  } finally {
    await rm(directory, { recursive: true });
  }
}
