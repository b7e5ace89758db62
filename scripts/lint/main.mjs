// Usage: node scripts/lint/main.mjs [folder of the project]
//
// Checks what neither ESLint nor Prettier knows: the words, the rooms of lib, the page of messages and the tests of promises. Prints a line for each
// finding, with its cure, and fails if there is any.
import { fileURLToPath } from 'node:url';
import { findUnexplained } from './messages.mjs';
import { findUntested } from './promises.mjs';
import { findImports, findRuntime } from './rooms.mjs';
import { openSources } from './sources.mjs';
import { findOutOfOrder } from './order.mjs';
import { findHabits } from './plain-words.mjs';
import { findPersons, findRetired, findUnknownFiles } from './words.mjs';

const sources = openSources(process.argv[2] ?? fileURLToPath(new URL('../..', import.meta.url)));
const rules = [
  findRetired,
  findUnknownFiles,
  findPersons,
  findImports,
  findRuntime,
  findUnexplained,
  findUntested,
  findOutOfOrder,
  findHabits,
];
const findings = rules.flatMap((rule) => [...rule(sources)]);
for (const { path, line, rule, cure } of findings) console.log(`${path}:${line} ${rule} (${cure})`);
if (findings.length > 0) process.exitCode = 1;
