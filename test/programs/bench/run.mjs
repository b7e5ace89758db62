import { SingleBar } from 'cli-progress';
import { build } from '../../jvm/build.mjs';
import { contenderOf } from './contenders.mjs';
import { Stage } from './harness/stage.mjs';
import { scenarios } from './scenarios/index.mjs';

const ROUNDS = 5;

/** All samples: by scenario, by contender, one per round. */
export async function run({ quick, only, rounds = quick ? 1 : undefined, silent }) {
  const chosen = scenarios
    .map((scenario) => ({
      ...scenario,
      contenders: quick ? scenario.quick : scenario.contenders,
      rounds: Math.min(rounds ?? Infinity, scenario.rounds ?? ROUNDS),
    }))
    .filter(
      ({ id, contenders }) => contenders.length > 0 && (only?.some((part) => id.startsWith(part)) ?? true),
    );
  const bar = progressBar(chosen, silent);
  const missing = missingIn(chosen.flatMap(({ contenders }) => contenders));
  const stage = await Stage.open();
  const results = {};
  try {
    for (const scenario of chosen)
      results[scenario.id] = await perform(stage, scenario, { quick, bar, missing });
  } finally {
    bar.stop();
    await stage.close();
  }
  return results;
}

/** Why contenders of a runtime are left out on this machine. */
function missingIn(contenders) {
  if (!contenders.some((contender) => contenderOf(contender).runtime === 'jvm')) return {};
  const reason = build();
  return reason === '' ? {} : { jvm: `left out: ${reason}` };
}

/** Contenders in turn, each round beginning with another one. */
async function perform(stage, scenario, { quick, bar, missing }) {
  const { id, title, figures, growth = false, contenders } = scenario;
  const samples = Object.fromEntries(contenders.map((contender) => [contender, []]));
  const out = Object.fromEntries(
    contenders.flatMap((contender) => {
      const reason = missing[contenderOf(contender).runtime];
      return reason === undefined ? [] : [[contender, reason]];
    }),
  );
  const failed = {};
  for (let round = 0; round < scenario.rounds; round++) {
    const turn = round % contenders.length;
    for (const contender of [...contenders.slice(turn), ...contenders.slice(0, turn)]) {
      bar.increment(1, { at: `${id}: ${contenderOf(contender).title}` });
      const { module, rounds = Infinity } = contenderOf(contender);
      if (contender in out || round >= rounds) continue;
      try {
        if (scenario.renews || module === 'ours') await stage.rehearse(contender);
        const sample = await stage.perform(contender, scenario.stage, (cast) =>
          scenario.measure(cast, { quick, contender }),
        );
        samples[contender].push(sample);
        // One stall shows what there is to show; more would only take time.
        if (sample.unserved > 0) out[contender] = 'stalls';
      } catch (error) {
        out[contender] = failed[contender] = error.message.split('\n')[0];
      }
    }
  }
  return { title, figures, growth, samples, out, failed };
}

function progressBar(chosen, silent) {
  const total = chosen.reduce((count, { contenders, rounds }) => count + contenders.length * rounds, 0);
  if (silent || !process.stderr.isTTY) return { increment: () => undefined, stop: () => undefined };
  const bar = new SingleBar({ format: '{bar} {percentage} % {at}', clearOnComplete: true, hideCursor: true });
  bar.start(total, 0, { at: '' });
  return bar;
}
