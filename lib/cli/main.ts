#!/usr/bin/env node
import { cli } from './cli.js';
import { EXIT } from './exit-code.js';
import { Screen } from './output/screen.js';

// A reader that has read enough, such as `head`, is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(EXIT.done);
  process.stderr.write(
    `nestjs-distributed-lock: the output cannot be written (${error.code ?? 'UNKNOWN'})\n`,
  );
  process.exit(EXIT.output);
});

const screen = new Screen();
const exitCode = await cli(process.argv.slice(2), screen);
await screen.flush();
process.exit(exitCode);
