import Table from 'cli-table3';
import { Argument, Command } from 'commander';
import { rounded } from '../bench/statistics.ts';
import { bodyFlood } from './body-flood.ts';
import { departures } from './departures.ts';
import { killObject, killOrigin, killSystem, killWorkerd } from './kills.ts';
import { neighbours } from './neighbours.ts';
import { pageStream } from './page-stream.ts';
import { rollout } from './rollout.ts';
import { holds, type Measurement, type Scenario } from './scenario.ts';
import { soakMix } from './soak.ts';
import { upgrade } from './upgrade.ts';

/**
 * `npm run chaos`: repeats the attacks and faults of docs/reliability.md and shows what other callers notice.
 */

const SCENARIOS: readonly Scenario[] = [
  bodyFlood,
  departures,
  killOrigin,
  killWorkerd,
  killObject,
  killSystem,
  neighbours,
  pageStream,
  upgrade,
  rollout,
  soakMix,
];

const names = SCENARIOS.map(({ name }) => name);

const program = new Command('chaos')
  .description(
    'Attacks the product as `npm start` runs it, one scenario after the other. Needs an idle machine.',
  )
  .addArgument(new Argument('[scenarios...]', 'default: all').choices(names));

function allowed({ atMost, atLeast }: Measurement): string {
  if (atMost !== undefined) return `≤ ${rounded(atMost, 2)}`;
  return atLeast === undefined ? '–' : `≥ ${rounded(atLeast, 2)}`;
}

/** Returns whether every figure is within its limit. */
async function run({ name, summary, run: measure }: Scenario): Promise<boolean> {
  console.log(`\n${name}: ${summary}`);
  const measurements = await measure();
  const table = new Table({ head: ['figure', 'value', 'allowed', ''], style: { head: [], border: [] } });
  for (const measurement of measurements) {
    const { figure, value } = measurement;
    table.push([figure, rounded(value, 2), allowed(measurement), holds(measurement) ? '' : 'FAILED']);
  }
  console.log(table.toString());
  return measurements.every(holds);
}

program.parse();
const chosen = new Set(program.args);
for (const scenario of SCENARIOS) {
  if (chosen.size > 0 && !chosen.has(scenario.name)) continue;
  if (!(await run(scenario))) process.exitCode = 1;
}
