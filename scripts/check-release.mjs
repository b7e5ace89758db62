// Usage: node scripts/check-release.mjs [--tag v1.2.3] [--root <folder of the project>] [--package <folder>]
//
// Says what the package lacks before it may be published, one line each, and fails if there is any. It reads the package that
// `npm run package` has put together. docs/releasing.md says how a release is made.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: { tag: { type: 'string' }, root: { type: 'string' }, package: { type: 'string' } },
});
const root = values.root ?? fileURLToPath(new URL('..', import.meta.url));
const folder = values.package ?? posix.join(root, 'dist/package');
const read = (path, from = root) => readFileSync(posix.join(from, path), 'utf8');
const manifest = JSON.parse(read('package.json'));

const findings = [
  ...addressOf(manifest),
  ...versionOf(manifest, read('CHANGELOG.md'), values.tag),
  ...contentsOf(manifest, packagedFiles()),
];
for (const finding of findings) console.log(`- ${finding}`);
if (findings.length > 0) process.exitCode = 1;
else console.log(`${manifest.name} ${manifest.version} can be released.`);

/** The address of the project: links of README lead there, and the package gets its `homepage` and `bugs` from it. */
function addressOf({ repository }) {
  const address = repository?.url ?? repository;
  if (address === undefined) return ['package.json has no `repository`.'];
  const home = webAddress(address);
  if (home !== undefined) return linksFrom(home);
  return [`\`repository\` of package.json is no address of a git repository (git+https://…): ${address}`];
}

/** The https address that is meant; undefined for other texts and for hosts that exist on one machine only. */
function webAddress(value) {
  if (typeof value !== 'string') return undefined;
  const url = parse(value.replace(/^git\+/, '').replace(/\.git$/, ''));
  if (url?.protocol !== 'https:' || !url.hostname.includes('.')) return undefined;
  return /(^|\.)example(\.\w+)?$/.test(url.hostname) ? undefined : url;
}

/** `URL.parse` came with Node 22. */
function parse(text, base) {
  return URL.canParse(text, base) ? new URL(text, base) : null;
}

/** A relative link of the README has to stay in the repository, an absolute one into it has to name a file of it. */
function linksFrom(home) {
  const base = `${home.href.replace(/\/$/, '')}/blob/HEAD/`;
  return linksOf('README.md').flatMap((link) => {
    const target = parse(link, base);
    if (target === null) return [`README.md has a link that is no address: ${link}`];
    const path = /^\/(?:blob|raw|tree)\/[^/]+\/(.*)$/.exec(
      target.href.startsWith(home.href) ? target.pathname.slice(home.pathname.length) : '',
    )?.[1];
    const isRelative = parse(link) === null;
    if (path === undefined) return isRelative ? [`README.md has a link out of the repository: ${link}`] : [];
    return existsSync(posix.join(root, path)) ? [] : [`README.md has a link to nothing: ${link}`];
  });
}

function versionOf({ version }, changelog, tag) {
  const [unreleased, newest] = changelog
    .split(/^## /m)
    .slice(1)
    .map((section) => [section.split('\n', 1)[0], section.replace(/^.*\n/, '').trim()]);
  const wrong = [];
  if (unreleased?.[0] !== 'Unreleased') wrong.push('CHANGELOG.md does not begin with `## Unreleased`.');
  else if (unreleased[1] !== '') wrong.push('CHANGELOG.md has lines under `## Unreleased`.');
  const [, named, day] = /^(\S+)(?: \((\d{4}-\d{2}-\d{2})\))?$/.exec(newest?.[0] ?? '') ?? [];
  if (named !== version) wrong.push(`CHANGELOG.md has no section for ${version} after \`## Unreleased\`.`);
  else if (day === undefined)
    wrong.push(`The heading of ${version} in CHANGELOG.md has no day: (YYYY-MM-DD).`);
  if (tag !== undefined && tag !== `v${version}`) wrong.push(`The tag ${tag} is not v${version}.`);
  return wrong;
}

function contentsOf({ repository, exports, main, types, bin = {} }, packaged) {
  if (packaged.size === 0) return [`There is no package in ${folder}: npm run package`];
  const needed = new Set(['README.md', 'LICENSE', 'package.json']);
  for (const path of [main, types, ...targetsOf(exports), ...targetsOf(bin)])
    needed.add(posix.normalize(path));
  const lacks = [...needed].filter((path) => !packaged.has(path)).map((path) => `The package lacks ${path}.`);
  const foreign = [...packaged].filter((path) =>
    /^(test|lib|sample-app|scripts|docs\/(api|design))\/|\.(spec|test)\.|\.(lua|map|png|svg)$/.test(path),
  );
  // Without an address, links to what only the repository has stay as they are, and that finding comes first.
  const broken = [...packaged]
    .filter((path) => path.endsWith('.md') && webAddress(repository?.url ?? repository) !== undefined)
    .flatMap((page) => relativeLinksOf(page).map((link) => [page, link]))
    .filter(([page, link]) => !isIn(packaged, posix.join(posix.dirname(page), link)))
    .map(([page, link]) => `${page} has a link to what the package lacks: ${link}`);
  return [...lacks, ...foreign.map((path) => `The package should not have ${path}.`), ...broken];
}

function targetsOf(entry) {
  return typeof entry === 'string' ? [entry] : Object.values(entry).flatMap(targetsOf);
}

function isIn(packed, path) {
  return packed.has(path) || [...packed].some((file) => file.startsWith(`${path.replace(/\/$/, '')}/`));
}

function packagedFiles() {
  if (!existsSync(folder)) return new Set();
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  return new Set(entries.map(({ parentPath, name }) => posix.relative(folder, posix.join(parentPath, name))));
}

/** Targets of links and pictures, code left out. */
function linksOf(page, from = root) {
  const prose = read(page, from)
    .replace(/^ *```[^]*?^ *```$/gm, '')
    .replace(/`[^`\n]*`/g, (code) => code.replace(/[[\]]/g, ''));
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target);
}

function relativeLinksOf(page) {
  return linksOf(page, folder)
    .filter((link) => parse(link) === null)
    .map((link) => link.replace(/#.*/, ''))
    .filter((path) => path !== '');
}
