// Writes the public surface of each subpath to test/package/api; with --check it fails where that is not up to date.
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Extractor, ExtractorConfig, ExtractorLogLevel } from '@microsoft/api-extractor';

const root = fileURLToPath(new URL('..', import.meta.url));
const check = process.argv.includes('--check');
const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

for (const [subpath, conditions] of Object.entries(exports).filter(([name]) => name !== './package.json')) {
  const name = subpath === '.' ? 'index' : basename(subpath);
  const quiet = { default: { logLevel: ExtractorLogLevel.None, addToApiReportFile: false } };
  const config = ExtractorConfig.prepare({
    configObjectFullPath: undefined,
    packageJsonFullPath: join(root, 'package.json'),
    configObject: {
      projectFolder: root,
      mainEntryPointFilePath: join(root, conditions.import.types),
      compiler: { tsconfigFilePath: join(root, 'tsconfig.build.json') },
      newlineKind: 'lf',
      apiReport: {
        enabled: true,
        reportFileName: `${name}.api.md`,
        reportFolder: join(root, 'test/package/api'),
        reportTempFolder: join(root, 'node_modules/.cache/api'),
      },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      messages: {
        compilerMessageReporting: quiet,
        extractorMessageReporting: quiet,
        tsdocMessageReporting: quiet,
      },
    },
  });
  const { apiReportChanged } = Extractor.invoke(config, {
    localBuild: !check,
    messageCallback: (message) => {
      message.handled = true;
    },
  });
  if (!apiReportChanged) continue;
  console.log(
    `The public surface of "${subpath}" ${check ? 'is not the one of' : 'is written to'} test/package/api/${name}.api.md`,
  );
  if (check) process.exitCode = 1;
}
