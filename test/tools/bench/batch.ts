import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Percentiles, runLoad } from '../../../origin/cli/load.ts';
import { ENDED } from '../../../shared/batch.ts';
import { statOf } from '../../support/child-processes.ts';
import { startSystem } from '../../support/system.ts';
import { BatchClient, lineOf } from '../../worker/batches/batch-client.ts';
import { workerdOf } from '../chaos/resident.ts';
import { newTenant } from '../chaos/scenario.ts';
import { engineTarget } from './engine-target.ts';
import { benchModels } from './models.ts';
import { percentiles, rounded } from './statistics.ts';
import { openAiTarget, type Target } from './target.ts';

/** Lines of a batch that run at the same time at most. */
const WINDOW = 96;
const TOKENS = 32;
const CONTEXT = 512;
const ROUNDS = 4;
const SMALL = { prompt: 'Once upon a time', maxTokens: 4 };
const IDLE_REQUESTS = 300;
/** Between small requests, in milliseconds. */
const GAP_MS = 40;

const promptOf = (line: number): string => `Once upon a time number ${line}`;

const input = (lines: number): string =>
  Array.from({ length: lines }, (_, line) =>
    lineOf(String(line), {
      prompt: promptOf(line),
      max_tokens: TOKENS,
      temperature: 0,
      ignore_eos: true,
      cache_prompt: false,
    }),
  ).join('\n');

/** Runs a batch. @throws if a line has failed */
async function runBatch(client: BatchClient, lines: number): Promise<void> {
  const { id } = await client.start(input(lines));
  const { status, request_counts: counts } = await client.until(id, ...ENDED);
  if (counts.completed < lines) throw new Error(`The batch is ${status}: ${JSON.stringify(counts)}`);
}

/** Times of first tokens of small requests, one after the other, until `isOver`. */
async function firstTokens(target: Target, isOver: (done: number) => boolean): Promise<Percentiles> {
  const times: number[] = [];
  while (!isOver(times.length)) {
    const { sent, events, ended } = await target.run(SMALL);
    times.push((events[0] ?? ended) - sent);
    await sleep(GAP_MS);
  }
  return percentiles(times);
}

async function seconds(run: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await run();
  return (performance.now() - begun) / 1000;
}

const times = ({ p50, p99 }: Percentiles): string => `p50 ${rounded(p50, 1)}, p99 ${rounded(p99, 1)}`;

/**
 * Measures batches through Worker and origin, in turns with the same prompts in the engine alone, and the
 * first tokens of another tenant's small requests beside a batch.
 * @param lines of each batch
 */
export async function measureBatch(
  lines: number,
  progress: (share: number, stage: string) => void,
): Promise<readonly (readonly [string, string])[]> {
  const system = await startSystem({ CONTINUO_SLOTS: String(WINDOW), CONTINUO_CONTEXT: String(CONTEXT) });
  const threads = availableParallelism();
  const directory = benchModels['built-in']!.directory();
  const engine = await engineTarget('engine', { directory, slots: WINDOW, contextLength: CONTEXT, threads });
  const quiet = await newTenant(system, 'quiet');
  const small = openAiTarget('small', { baseUrl: `${system.url}/v1`, model: 'default', apiKey: quiet });
  try {
    const request = (to: string, init?: RequestInit) => fetch(system.url + to, init);
    const client = new BatchClient({ request }, await newTenant(system, 'loud'));
    const pids = [Number(workerdOf(system)), system.originPid()] as const;
    const cpuMs = (): number[] => pids.map((pid) => statOf(pid)?.cpuMs ?? 0);
    const rates: Record<'engine' | 'batch', number[]> = { engine: [], batch: [] };
    const used = [0, 0];
    for (let round = 0; round <= ROUNDS; round++) {
      progress(round / (ROUNDS + 2), 'engine alone, then a batch');
      const job = (line: number) => ({ prompt: promptOf(line), maxTokens: TOKENS });
      const alone = await seconds(() => runLoad(WINDOW, lines, (line) => engine.run(job(line))));
      const before = cpuMs();
      const batch = await seconds(() => runBatch(client, lines));
      if (round === 0) continue; // warms up
      cpuMs().forEach((ms, at) => {
        used[at]! += (ms - before[at]!) / (lines * ROUNDS);
      });
      rates.engine.push((lines * TOKENS) / alone);
      rates.batch.push((lines * TOKENS) / batch);
    }
    progress((ROUNDS + 1) / (ROUNDS + 2), 'small requests');
    await firstTokens(small, (done) => done >= IDLE_REQUESTS / 3);
    const idle = await firstTokens(small, (done) => done >= IDLE_REQUESTS);
    let isOver = false;
    const running = runBatch(client, 2 * lines).finally(() => {
      isOver = true;
    });
    const beside = await firstTokens(small, () => isOver);
    await running;
    const shares = rates.batch.map((rate, round) => rounded((100 * rate) / rates.engine[round]!));
    return [
      ['engine alone, best round', `${rounded(Math.max(...rates.engine))} tokens/s`],
      ['batch, best round', `${rounded(Math.max(...rates.batch))} tokens/s`],
      ['batch as a share of the engine, by round', `${shares.join(', ')} %`],
      ['CPU per line: Worker, origin', `${used.map((ms) => rounded(ms, 2)).join(', ')} ms`],
      ['first token of a small request, idle', `${times(idle)} ms`],
      ['first token of a small request beside a batch', `${times(beside)} ms`],
    ];
  } finally {
    await small.close();
    await engine.close();
    await system.stop();
  }
}
