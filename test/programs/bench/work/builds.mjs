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

/**
 * Two more copies of the build, one of them without channels. Both are new: what a copy has been used for in a process decides
 * how its code is compiled, and costs more than an idle channel does.
 */
export async function withAndWithoutChannels(use) {
  // Below node_modules, where they find the peers and no tool looks for sources.
  const directory = await mkdtemp(here('../../../../node_modules/.lock-builds-'));
  const load = async (name, tracing) => {
    const copy = join(directory, name);
    await cp(here('../../../../dist'), copy, { recursive: true });
    await writeFile(join(copy, 'package.json'), '{ "type": "module" }');
    if (tracing !== undefined) await writeFile(join(copy, 'client/tracing.js'), tracing);
    return await import(pathToFileURL(join(copy, 'index.js')).href);
  };
  try {
    return await use({ withChannels: await load('with'), withoutChannels: await load('without', NOTHING) });
  } finally {
    await rm(directory, { recursive: true });
  }
}
