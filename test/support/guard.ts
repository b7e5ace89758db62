import { spawn, type ChildProcess } from 'node:child_process';

/**
 * Ends a child process, and removes its directory, when this process goes away without having done so. An exit
 * handler cannot: Jest gives tests a `process` whose events never fire, and nothing fires after SIGKILL. A closed pipe
 * is noticed in every case, by a shell in a session of its own that no Ctrl-C reaches.
 */
export function guard(child: ChildProcess, directory = ''): void {
  const script = 'read -r _; kill -9 "$0"; [ -z "$1" ] || rm -rf "$1"';
  const shell = spawn('/bin/sh', ['-c', script, String(child.pid), directory], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  // The child's number may soon belong to another process, so the guard goes first.
  child.once('exit', () => shell.kill('SIGKILL'));
}
