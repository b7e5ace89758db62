// The package is ESM; its second build, for applications on CommonJS, says of itself that it is not.
import { writeFileSync } from 'node:fs';

writeFileSync(new URL('../dist/cjs/package.json', import.meta.url), '{ "type": "commonjs" }\n');
