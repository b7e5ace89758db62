import { execFile, execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CACHE } from './cache.mjs';

const run = promisify(execFile);

/** Debian's releases, and the servers that are taken from each. */
const RELEASES = { trixie: ['redis', 'valkey'], sid: ['valkey'] };
const MIRROR = process.env.DEBIAN_MIRROR ?? 'http://deb.debian.org/debian';

/** What the servers are called before they are here. */
export const KEYS = Object.entries(RELEASES).flatMap(([release, families]) =>
  families.map((family) => `${family}-${release}`),
);

/** What a server calls itself, and a folder with its programs under Redis's names, for the PATH of a test run. */
export async function server(key) {
  const [family, release] = key.split('-');
  return await serverOf(await unpacked(release, RELEASES[release]), release, family);
}

/** Not installed, so nothing else on the machine changes: each program runs through the loader of its own release. */
async function unpacked(release, families) {
  const root = join(CACHE, release);
  if (existsSync(root)) return root;
  const begun = `${root}.begun`;
  rmSync(begun, { recursive: true, force: true });
  mkdirSync(begun, { recursive: true });
  const include = `--include=${families.map((family) => `${family}-server`).join(',')}`;
  const known = `/usr/share/debootstrap/scripts/${release}`;
  const script = existsSync(known) ? [] : ['/usr/share/debootstrap/scripts/sid'];
  console.error(`Unpacking Debian ${release}`);
  await run('debootstrap', ['--foreign', '--variant=minbase', include, release, begun, MIRROR, ...script]);
  const archives = join(begun, 'var/cache/apt/archives');
  for (const file of readdirSync(archives)) {
    if (file.endsWith('.deb')) await run('dpkg-deb', ['-x', join(archives, file), begun]);
  }
  rmSync(archives, { recursive: true });
  renameSync(begun, root);
  return root;
}

async function serverOf(root, release, family) {
  const bin = join(CACHE, 'bin', `${family}-${release}`);
  mkdirSync(bin, { recursive: true });
  const libraries = ['usr/lib/*-linux-gnu', 'lib/*-linux-gnu', 'usr/lib'].map((path) => join(root, path));
  for (const program of ['server', 'cli']) {
    const file = join(bin, `redis-${program}`);
    writeFileSync(file, wrapper(root, libraries, `${family}-${program}`));
    chmodSync(file, 0o755);
  }
  const { stdout } = await run(join(bin, 'redis-server'), ['--version']);
  const [, title = '', version = ''] = /^(\w+) server v=(\S+)/.exec(stdout) ?? [];
  return { title: `${title} ${version}`, bin };
}

const wrapper = (root, libraries, program) => `#!/bin/sh
loader=$(echo ${root}/lib64/ld-linux*.so* ${root}/lib/ld-linux*.so*)
path=$(echo ${libraries.join(' ')} | tr ' ' :)
exec "\${loader%% *}" --library-path "$path" ${root}/usr/bin/${program} "$@"
`;

/** Why no release can be unpacked here; undefined where one can. */
export function obstacle() {
  if (process.platform !== 'linux') return 'it unpacks Debian, which runs on Linux only';
  if (process.getuid() !== 0) return 'debootstrap needs root';
  try {
    execFileSync('debootstrap', ['--version'], { stdio: 'ignore' });
  } catch {
    return 'there is no debootstrap: apt-get install debootstrap';
  }
  return undefined;
}
