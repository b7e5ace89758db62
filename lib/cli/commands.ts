import type { Command } from './command.js';

const CONNECTION = {
  url: 'value',
  cluster: 'value',
  sentinel: 'value',
  master: 'value',
  nodes: 'value',
  cacert: 'value',
  cert: 'value',
  key: 'value',
  prefix: 'value',
} as const;
const QUESTION = { ...CONNECTION, timeout: 'value', json: 'flag' } as const;

export const COMMANDS: ReadonlyMap<string, Command> = new Map<string, Command>([
  [
    'ls',
    {
      arguments: ['[prefix]'],
      options: { ...QUESTION, held: 'flag', waited: 'flag', limit: 'value' },
      load: () => import('./commands/ls.js'),
    },
  ],
  ['show', { arguments: ['<name>'], options: QUESTION, load: () => import('./commands/show.js') }],
  [
    'watch',
    {
      arguments: ['[prefix]'],
      options: { ...QUESTION, held: 'flag', waited: 'flag', limit: 'value', interval: 'value' },
      load: () => import('./commands/watch.js'),
    },
  ],
  [
    'release',
    {
      arguments: ['<name>'],
      options: { ...QUESTION, reason: 'value', force: 'flag', yes: 'flag' },
      load: () => import('./commands/release.js'),
    },
  ],
  [
    'run',
    {
      arguments: ['<name>'],
      options: { ...CONNECTION, wait: 'value', lease: 'value', fair: 'flag' },
      runsProgram: true,
      load: () => import('./commands/run.js'),
    },
  ],
  [
    'fencing-sql',
    {
      arguments: [],
      options: { dialect: 'value', table: 'value', as: 'value' },
      load: () => import('./commands/fencing-sql.js'),
    },
  ],
  ['doctor', { arguments: [], options: QUESTION, load: () => import('./commands/doctor.js') }],
]);
