// Usage: npm run soak [-- --minutes 60 --rate 500 --restart 300 --look 10 --shops 3 --summary soak.json]
//
// Opens the sample application in some processes on one server, lets buyers come, restarts the server again and again, and
// looks whether memory, sockets, timers, listeners and keys stay flat. `--leak` makes the shops leak: then the run has to find
// that each measure grows.
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { jestReport } from './report.js';
import { soak } from './soak.js';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    /** Buyers in a second. */
    rate: { type: 'string', default: '500' },
    shops: { type: 'string', default: '3' },
    /** s between restarts of the server. */
    restart: { type: 'string', default: '300' },
    /** s between looks. */
    look: { type: 'string', default: '10' },
    leak: { type: 'boolean', default: false },
    /** Where the figures go, as JSON. */
    summary: { type: 'string' },
    // A report as Jest would write it, which CI adds up.
    ci: { type: 'boolean' },
    json: { type: 'boolean' },
    outputFile: { type: 'string' },
  },
});

const report = await soak(
  {
    minutes: Number(values.minutes),
    rate: Number(values.rate),
    shops: Number(values.shops),
    restart: Number(values.restart),
    look: Number(values.look),
    leak: values.leak,
  },
  console.log,
);
if (values.summary !== undefined) writeFileSync(values.summary, `${JSON.stringify(report, null, 1)}\n`);
console.log(
  `\n${String(report.locks)} locks in ${report.seconds.toFixed(0)} s, ${report.rate.toFixed(0)} a second; answers ` +
    `${JSON.stringify(report.answers)}; ${String(report.restarts.length)} restarts; ${String(report.soldTwice)} seats sold twice`,
);
for (const failure of report.failures.slice(0, 50)) console.log(`  ${failure}`);

const stillFlat = report.verdicts.filter(({ flat }) => flat);
if (values.leak) for (const { title, of } of stillFlat) console.log(`  NOT FOUND: ${title} of ${of}`);
const isGood = values.leak ? stillFlat.length === 0 : report.failures.length === 0;
if (values.outputFile !== undefined) writeFileSync(values.outputFile, JSON.stringify(jestReport(report)));
process.exitCode = isGood ? 0 : 1;
