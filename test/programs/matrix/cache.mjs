import { fileURLToPath } from 'node:url';

/** Where servers and runtimes are kept from run to run. It may be deleted. */
export const CACHE = fileURLToPath(new URL('../../../node_modules/.cache/matrix', import.meta.url));
