import * as scripts from './scripts.js';
import { COMMAND } from '../../lib/stores/redis/connection/command-refused.js';

/** Each command that a script names, once. */
export const COMMANDS = [
  ...new Set(
    Object.values(scripts)
      .flatMap(({ source }) => [...source.matchAll(new RegExp(COMMAND, 'g'))])
      .map(([, name = '']) => name),
  ),
];
