import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const script = join(root, 'scripts/check-release.mjs');

/** What the check finds, one line each. */
function findings(folder: string, ...args: string[]): string[] {
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, '--root', folder, ...args], {
    encoding: 'utf8',
  });
  expect(stderr).toBe('');
  const found = [...stdout.matchAll(/^- (.*)$/gm)].map(([, line = '']) => line);
  expect(status).toBe(found.length === 0 ? 0 : 1);
  return found;
}

describe('The release check', () => {
  const home = 'https://forge.test/team/locks';
  const manifest = {
    name: 'locks',
    version: '1.2.3',
    main: './dist/cjs/index.js',
    types: './dist/cjs/index.d.ts',
    exports: { '.': { import: './dist/index.js' }, './package.json': './package.json' },
    files: ['dist', 'docs', '!docs/api', 'CHANGELOG.md'],
    repository: { type: 'git', url: `git+${home}.git` },
    homepage: `${home}#readme`,
    bugs: { url: `${home}/issues` },
  };
  let folder: string;

  const write = (path: string, text: string | object) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), typeof text === 'string' ? text : JSON.stringify(text));
  };

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'release-'));
    write('package.json', manifest);
    write(
      'README.md',
      `[how](docs/how.md#it-works), [there](${home}/blob/main/docs/how.md), [npm](https://npm.test)`,
    );
    write('CHANGELOG.md', '# Changelog\n\n## Unreleased\n\n## 1.2.3 (2026-01-31)\n\n- A line.\n');
    write('LICENSE', 'MIT');
    for (const path of ['dist/index.js', 'dist/cjs/index.js', 'dist/cjs/index.d.ts', 'docs/how.md'])
      write(path, '# It works');
    write('docs/api/page.md', 'made by typedoc');
  });

  afterEach(() => {
    rmSync(folder, { recursive: true });
  });

  it('finds nothing in a package that is complete', () => {
    expect(findings(folder, '--tag', 'v1.2.3')).toEqual([]);
  });

  it.each(['repository', 'homepage', 'bugs'])('finds that package.json has no %s', (field) => {
    write('package.json', { ...manifest, [field]: undefined });
    expect(findings(folder)).toEqual([`package.json has no \`${field}\`.`]);
  });

  it.each(['TODO', 'https://locks.example/', 'http://forge.test/locks', 'https://localhost/locks'])(
    'takes %s for no address',
    (address) => {
      write('package.json', { ...manifest, homepage: address });
      expect(findings(folder)).toEqual([
        expect.stringContaining('`homepage` of package.json is no https address'),
      ]);
    },
  );

  it.each([
    ['nowhere.md', ['README.md has a link to nothing', 'README.md has a link to what the tarball lacks']],
    [`${home}/blob/main/docs/where.md`, ['README.md has a link to nothing']],
    [
      '../../../../elsewhere.md',
      ['README.md has a link out of the repository', 'README.md has a link to what'],
    ],
  ])('finds that the README links to %s', (target, texts) => {
    write('README.md', `[where](${target})`);
    expect(findings(folder)).toEqual(texts.map((text) => expect.stringContaining(text)));
  });

  it('finds a page that is linked and does not ship', () => {
    write('CONTRIBUTING.md', '# Contributing');
    write('README.md', '[how to help](CONTRIBUTING.md)');
    expect(findings(folder)).toEqual(['README.md has a link to what the tarball lacks: CONTRIBUTING.md']);
  });

  it('finds what the tarball lacks, and what does not belong into it', () => {
    write('test/a.spec.ts', '');
    write('package.json', { ...manifest, files: ['dist/index.js', 'CHANGELOG.md', 'test'] });
    write('README.md', '');
    expect(findings(folder)).toEqual([
      'The tarball lacks docs/how.md.',
      'The tarball lacks dist/cjs/index.js.',
      'The tarball lacks dist/cjs/index.d.ts.',
      'The tarball should not have test/a.spec.ts.',
    ]);
  });

  it.each([
    ['## 1.2.3 (2026-01-31)\n', 'CHANGELOG.md does not begin with `## Unreleased`.'],
    ['## Unreleased\n\n- new\n\n## 1.2.3 (2026-01-31)\n', 'CHANGELOG.md has lines under `## Unreleased`.'],
    [
      '## Unreleased\n\n## 1.2.2 (2026-01-31)\n',
      'CHANGELOG.md has no section for 1.2.3 after `## Unreleased`.',
    ],
    ['## Unreleased\n\n## 1.2.3\n', 'The heading of 1.2.3 in CHANGELOG.md has no day: (YYYY-MM-DD).'],
  ])('reads the changelog %j', (changelog, finding) => {
    write('CHANGELOG.md', `# Changelog\n\n${changelog}`);
    expect(findings(folder)).toContain(finding);
  });

  it('finds a tag that is not the version', () => {
    expect(findings(folder, '--tag', 'v1.2.4')).toEqual(['The tag v1.2.4 is not v1.2.3.']);
  });
});

it('This package lacks nothing for a release but its address and what is written when it is cut', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  expect(scripts.prepublishOnly).toBe('npm run release:check');
  const allowed =
    /^package\.json has no `(repository|homepage|bugs)`\.$|^CHANGELOG\.md has lines under|has no day/;
  expect(findings(root).filter((finding) => !allowed.test(finding))).toEqual([]);
});
