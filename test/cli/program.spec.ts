import { describe, expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { COMMANDS } from '../../lib/cli/commands.js';
import { COMMAND_HELP, HELP } from '../../lib/cli/help.js';
import { call, PROGRAM, run } from './command-line.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const manifest = JSON.parse(readFileSync(`${root}/package.json`, 'utf8')) as {
  version: string;
  bin: Record<string, string>;
};

describe('The program', () => {
  it('is what package.json names, and can be started by its first line', () => {
    const { 'nestjs-distributed-lock': path = '' } = manifest.bin;
    expect(fileURLToPath(new URL(path, `file://${root}`))).toBe(PROGRAM);
    expect(readFileSync(PROGRAM, 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/);
  });

  it('tells its version, its help, and what is wrong with a call', async () => {
    const [version, help, nothing] = await Promise.all([run(['--version']), run(['--help']), run([])]);
    expect(version).toMatchObject({ code: 0, stdout: `${manifest.version}\n`, stderr: '' });
    expect(help).toMatchObject({ code: 0, stdout: `${HELP}\n`, stderr: '' });
    expect(nothing).toMatchObject({ code: 64, stdout: '', stderr: expect.stringContaining(HELP) });
  });

  it('ends quietly when its reader has read enough', () => {
    const { status, stdout, stderr } = spawnSync('sh', [
      '-c',
      `"${process.execPath}" "${PROGRAM}" --help | true`,
    ]);
    expect([status, stdout.toString(), stderr.toString()]).toEqual([0, '', '']);
  });

  (existsSync('/dev/full') ? it : it.skip)('fails when its output cannot be written', () => {
    const { status, stderr } = spawnSync('sh', [
      '-c',
      `"${process.execPath}" "${PROGRAM}" --help > /dev/full`,
    ]);
    expect([status, stderr.toString()]).toEqual([
      74,
      'nestjs-distributed-lock: the output cannot be written (ENOSPC)\n',
    ]);
  });

  it('has the same help for help and for --help', async () => {
    for (const args of [['help'], ['help', '--help'], ['--help', '-h']])
      expect(await call(args)).toMatchObject({ code: 0, stdout: `${HELP}\n` });
  });
});

describe('The help', () => {
  it('of each command is there', () => {
    expect(Object.keys(COMMAND_HELP)).toEqual([...COMMANDS.keys()]);
  });

  it.each([['', HELP], ...Object.entries(COMMAND_HELP)])('%s fits one screen', (_, text) => {
    const lines = text.split('\n');
    // One line is for the prompt.
    expect(lines.length).toBeLessThan(24);
    expect(lines.filter((line) => line.length > 80)).toEqual([]);
  });

  it.each([...COMMANDS])('of %s names each of its options, and no other', async (name, { options }) => {
    const [, where = ''] = /(Where the locks are[^]*?)\n\n/.exec(HELP) ?? [];
    const named = (text: string) => [...text.matchAll(/--([a-z]+)/g)].map(([, option = '']) => option);
    const text = COMMAND_HELP[name] ?? '';
    const own = named(text.replace(/^Where the locks are[^]*?--help$/m, ''));
    const places = 'url' in options ? named(where) : [];
    expect(new Set([...own, ...places])).toEqual(new Set(Object.keys(options)));
    for (const args of [
      [name, '--help'],
      ['help', name],
      [name, '-h'],
    ])
      expect(await call(args)).toEqual({ code: 0, stdout: `${text}\n`, stderr: '' });
  });
});
