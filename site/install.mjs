// Installs the modules of the site when they are missing or not the ones of the lock file.
import { execFileSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const [wanted, installed] = ['package-lock.json', 'node_modules/.package-lock.json'].map(here);
if (!existsSync(installed) || statSync(installed).mtimeMs < statSync(wanted).mtimeMs)
  execFileSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: here('.'),
    stdio: 'inherit',
  });
