import { HttpStatus } from '@nestjs/common';
import type { CommandCount } from './command-count.js';
import type { Answer } from './rush.js';
import { table } from './table.js';

export interface Round {
  readonly mode: string;
  readonly answers: readonly Answer[];
  readonly commands: CommandCount;
}

const HEADER = [
  'mode',
  'sold',
  'oversold',
  'sold out (410)',
  'busy (409)',
  'p50 ms',
  'p99 ms',
  'lock commands',
  'all commands',
];

/** What a lock sends. The shop itself sends GET and SET. */
const LOCK_COMMANDS = ['eval', 'evalsha', 'subscribe', 'unsubscribe'];

export function oversold({ answers }: Round, seats: number): number {
  return Math.max(0, count(answers, HttpStatus.CREATED) - seats);
}

export function report(rounds: readonly Round[], seats: number): string {
  const rows = rounds.map((round) => {
    const { mode, answers, commands } = round;
    const waits = answers.map(({ wait }) => wait).sort((a, b) => a - b);
    return [
      mode,
      count(answers, HttpStatus.CREATED),
      oversold(round, seats),
      count(answers, HttpStatus.GONE),
      count(answers, HttpStatus.CONFLICT),
      percentile(waits, 0.5),
      percentile(waits, 0.99),
      LOCK_COMMANDS.reduce((sum, command) => sum + (commands.calls.get(command) ?? 0), 0),
      commands.total,
    ];
  });
  const details = rounds.map(({ mode, commands }) => {
    const mostUsed = [...commands.calls].sort(([, a], [, b]) => b - a);
    return `Redis ran ${mode}: ${mostUsed.map(([command, calls]) => `${command} ${String(calls)}`).join(', ')}`;
  });
  return [
    table(HEADER, rows),
    '',
    ...details,
    'Commands that a script runs are counted like the others.',
  ].join('\n');
}

const count = (answers: readonly Answer[], status: number) =>
  answers.filter((answer) => answer.status === status).length;

/** By nearest rank. */
const percentile = (sorted: readonly number[], share: number) =>
  (sorted[Math.ceil(sorted.length * share) - 1] ?? NaN).toFixed(0);
