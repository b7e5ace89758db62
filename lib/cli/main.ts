#!/usr/bin/env node
import { cli } from './cli.js';
import { EXIT } from './exit-code.js';

// A reader that has read enough, such as `head`, is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(EXIT.done);
  process.stderr.write(
    `nestjs-distributed-lock: the output cannot be written (${error.code ?? 'UNKNOWN'})\n`,
  );
  process.exit(EXIT.output);
});
// Nothing is left to tell it to. A command that is to end with its lease needs this process for that.
process.stderr.on('error', () => undefined);

const exitCode = await cli(process.argv.slice(2));
// What has been printed is out when the process ends.
process.stdout.write('', (error) => {
  if (error === null || error === undefined) process.exit(exitCode);
});
