import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { manifestOf } from '../../../scripts/package/manifest.mjs';
import { pages } from '../../../scripts/package/pages.mjs';
import { linksOf } from '../../docs/markdown.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));
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
    repository: { type: 'git', url: `git+${home}.git` },
  };
  let folder: string;

  const write = (path: string, text: string | object) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), typeof text === 'string' ? text : JSON.stringify(text));
  };

  /** A file of the project that the package has, too. */
  const ship = (path: string, text: string | object) => {
    write(path, text);
    write(join('dist/package', path), text);
  };

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'release-'));
    ship('package.json', manifest);
    ship(
      'README.md',
      `[how](docs/how.md#it-works), [there](${home}/blob/main/docs/how.md), [npm](https://npm.test)`,
    );
    write('CHANGELOG.md', '# Changelog\n\n## Unreleased\n\n## 1.2.3 (2026-01-31)\n\n- A line.\n');
    ship('LICENSE', 'MIT');
    for (const path of ['dist/index.js', 'dist/cjs/index.js', 'dist/cjs/index.d.ts', 'docs/how.md'])
      ship(path, '# It works');
  });

  afterEach(() => {
    rmSync(folder, { recursive: true });
  });

  it('finds nothing in a package that is complete', () => {
    expect(findings(folder, '--tag', 'v1.2.3')).toEqual([]);
  });

  it('finds that package.json has no repository', () => {
    write('package.json', { ...manifest, repository: undefined });
    expect(findings(folder)).toEqual(['package.json has no `repository`.']);
  });

  it.each(['TODO', 'https://locks.example/', 'http://forge.test/locks', 'https://localhost/locks'])(
    'takes %s for no address',
    (address) => {
      write('package.json', { ...manifest, repository: address });
      expect(findings(folder)).toEqual([
        expect.stringContaining('`repository` of package.json is no address of a git repository'),
      ]);
    },
  );

  it.each([
    ['nowhere.md', ['README.md has a link to nothing', 'README.md has a link to what the package lacks']],
    [`${home}/blob/main/docs/where.md`, ['README.md has a link to nothing']],
    [
      '../../../../elsewhere.md',
      ['README.md has a link out of the repository', 'README.md has a link to what'],
    ],
  ])('finds that the README links to %s', (target, texts) => {
    ship('README.md', `[where](${target})`);
    expect(findings(folder)).toEqual(texts.map((text) => expect.stringContaining(text)));
  });

  it('finds a page that is linked and does not ship', () => {
    write('CONTRIBUTING.md', '# Contributing');
    ship('README.md', '[how to help](CONTRIBUTING.md)');
    expect(findings(folder)).toEqual(['README.md has a link to what the package lacks: CONTRIBUTING.md']);
  });

  it('finds what the package lacks, and what does not belong into it', () => {
    for (const path of ['dist/index.js', 'dist/cjs', 'LICENSE'])
      rmSync(join(folder, 'dist/package', path), { recursive: true });
    for (const path of [
      'test/a.spec.ts',
      'docs/design/how.md',
      'docs/board.png',
      'dist/index.js.map',
      'dist/a.lua',
    ])
      write(join('dist/package', path), '');
    expect(findings(folder).sort()).toEqual([
      'The package lacks LICENSE.',
      'The package lacks dist/cjs/index.d.ts.',
      'The package lacks dist/cjs/index.js.',
      'The package lacks dist/index.js.',
      'The package should not have dist/a.lua.',
      'The package should not have dist/index.js.map.',
      'The package should not have docs/board.png.',
      'The package should not have docs/design/how.md.',
      'The package should not have test/a.spec.ts.',
    ]);
  });

  it('finds that there is no package', () => {
    rmSync(join(folder, 'dist/package'), { recursive: true });
    expect(findings(folder)).toEqual([expect.stringMatching(/^There is no package in .*: npm run package$/)]);
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
  const folder = mkdtempSync(join(tmpdir(), 'package-'));
  try {
    const { stderr } = spawnSync(process.execPath, [join(root, 'scripts/package/main.mjs'), folder], {
      encoding: 'utf8',
    });
    expect(stderr).toBe('');
    const allowed = /^package\.json has no `repository`\.$|^CHANGELOG\.md has lines under|has no day/;
    expect(findings(root, '--package', folder).filter((finding) => !allowed.test(finding))).toEqual([]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

it('The package gets its homepage and the place for bugs from the address of the repository', () => {
  const repository = { type: 'git', url: 'git+https://forge.test/team/locks.git' };
  expect(manifestOf({ name: 'locks', repository })).toEqual({
    name: 'locks',
    repository,
    homepage: 'https://forge.test/team/locks#readme',
    bugs: { url: 'https://forge.test/team/locks/issues' },
  });
  expect(manifestOf({ name: 'locks' })).toEqual({ name: 'locks' });
});

it('The pages of the package link to each other, and into the repository for what only that has', () => {
  const repository = { type: 'git', url: 'git+https://forge.test/team/locks.git' };
  const into = /^https:\/\/forge\.test\/team\/locks\/(?:blob|raw)\/v1\.2\.3\/([^#]+)/;
  const packed: Record<string, string> = pages(root, { version: '1.2.3', repository });
  expect(Object.keys(packed)).toEqual(expect.arrayContaining(['README.md', 'LICENSE', 'docs/guarantees.md']));
  const elsewhere = new Set<string>();
  for (const [page, text] of Object.entries(packed)) {
    if (!page.endsWith('.md')) continue;
    for (const link of linksOf(text)) {
      const path = into.exec(link)?.[1];
      if (path !== undefined) elsewhere.add(path);
      else if (!/^https?:|^#/.test(link)) {
        const target = join(dirname(page), link.replace(/#.*/, ''));
        const isHere = Object.keys(packed).some((name) => name === target || name.startsWith(`${target}/`));
        expect([page, link, isHere]).toEqual([page, link, true]);
      }
    }
  }
  expect([...elsewhere]).toEqual(
    expect.arrayContaining(['CHANGELOG.md', 'docs/board-dark.png', 'docs/design/overview.md']),
  );
  expect([...elsewhere].filter((path) => !existsSync(join(root, path)))).toEqual([]);
  // The registry shows README alone.
  expect(linksOf(packed['README.md'] ?? '').filter((link) => !link.startsWith('https://'))).toEqual([]);
});
