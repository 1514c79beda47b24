import { createEngineLocks } from '../../../origin/process/engine-locks.ts';
import { benchSubmission, engineTargetOf } from '../bench/engine-target.ts';
import { loadOf, type Rates, type ServedSetting, type StartedEngine, startEngine } from './served-rates.ts';

/** Whether engines that start after others in a process are as fast as the first one. */

const STARTS = 10;
/** Streams that show a lost graph or whole rows of logits. */
const STREAMS = 32;

/** Returns the rate of greedy decoding, and what the engine lacks. */
async function describe(
  { engine, tokenizer, warning }: StartedEngine,
  setting: ServedSetting,
): Promise<string> {
  const target = engineTargetOf('greedy', engine, (job) => benchSubmission(job, tokenizer));
  const streams = Math.max(...setting.batches);
  await loadOf(target, streams, setting.promptTokens, 8);
  const perSecond = await loadOf(target, streams, setting.promptTokens, setting.tokens);
  const { usesGraphs, runsAhead } = engine.status;
  const ways = `${usesGraphs ? 'graphs' : 'no graphs'}, ${runsAhead ? 'early runs' : 'runs in turn'}`;
  return `${perSecond} tokens/s, ${ways}, ${warning ?? 'no warning'}`;
}

const fewer = (setting: ServedSetting): ServedSetting => ({
  ...setting,
  batches: [Math.min(STREAMS, Math.max(...setting.batches))],
});

/** Memory of the card, or why it is not known. */
function memoryLine(freeMiB: () => number): string {
  try {
    return `${freeMiB()} MiB are free`;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Starts and stops an engine ten times. */
export async function tenReloads(all: ServedSetting, freeMiB: () => number): Promise<Rates> {
  const setting = fewer(all);
  const engineLocks = createEngineLocks();
  const rates: Record<string, string> = { before: memoryLine(freeMiB) };
  for (let start = 1; start <= STARTS; start++) {
    const started = await startEngine(setting, engineLocks);
    try {
      rates[`start ${start}`] = await describe(started, setting);
    } finally {
      await started.engine.stop();
    }
    rates[`after stop ${start}`] = memoryLine(freeMiB);
  }
  return rates;
}

/** Two engines of one process, which decode at the same time. */
export async function twoEngines(all: ServedSetting): Promise<Rates> {
  const setting = fewer(all);
  const engineLocks = createEngineLocks();
  const started: StartedEngine[] = [];
  try {
    for (let engine = 0; engine < 2; engine++) started.push(await startEngine(setting, engineLocks));
    const [first, second] = await Promise.all(started.map((one) => describe(one, setting)));
    return { first: first!, second: second! };
  } finally {
    await Promise.all(started.map(({ engine }) => engine.stop()));
  }
}
