import { absences } from './absence.mjs';
import { board } from './board.mjs';
import { control, crowd, fleet32x1, fleet4x8, hold2ms } from './bursts.mjs';
import { fenced } from './fenced.mjs';
import { growths } from './growth.mjs';
import { handOver } from './hand-over.mjs';
import { held } from './held.mjs';
import { list } from './list.mjs';
import { decorator, nested, reEntry, telemetry } from './local.mjs';
import { loopScenarios } from './loops.mjs';
import { leaseMemory, waiterMemory } from './memory.mjs';
import { coldScenario, crowdedScenario, parallelScenario, uncontendedScenario } from './sequences.mjs';
import { many } from './many.mjs';
import { multis, redlocks } from './several.mjs';

export const scenarios = [
  uncontendedScenario,
  parallelScenario,
  crowdedScenario,
  coldScenario,
  reEntry,
  crowd,
  fleet4x8,
  fleet32x1,
  hold2ms,
  control,
  ...loopScenarios,
  handOver,
  ...multis,
  ...redlocks,
  ...absences,
  held,
  leaseMemory,
  waiterMemory,
  decorator,
  telemetry,
  nested,
  list,
  board,
  ...fenced,
  ...many,
  ...growths,
];
