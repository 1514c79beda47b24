import { availableParallelism } from 'node:os';
import { type LoadFigures, loadFigures, runLoad, type Trace } from '../../../origin/cli/load.ts';
import type { SeededSampling, StepReport } from '../../../origin/engine/messages.ts';
import { EngineClient, spawnEngineThread } from '../../../origin/engine/thread/engine-client.ts';
import type { DeviceSettings } from '../../../origin/model/config/device.ts';
import { textsOf } from '../../../origin/model/config/model-directory.ts';
import { Tokenizer } from '../../../origin/tokenizer/tokenizer.ts';
import { OriginProcess, SECRET } from '../../origin/http/origin-process.ts';
import { benchSubmission, engineTargetOf } from '../bench/engine-target.ts';
import { measureLoad } from '../bench/load.ts';
import { CONTEXT, tokenIds } from '../bench/plan.ts';
import { type Measured, measureSharedPrefix, PROMPTS } from '../bench/shared-prefix.ts';
import { median } from '../bench/statistics.ts';
import { type Job, originTarget, type Target } from '../bench/target.ts';
import { type Rival, type ServerSetting, withRival } from './rivals/rival.ts';

export interface ServedSetting {
  readonly directory: string;
  readonly device: DeviceSettings;
  readonly batches: readonly number[];
  readonly promptTokens: number;
  readonly tokens: number;
}

/** Sizes of requests where decoding is measured. */
export const SERVED = { promptTokens: 64, tokens: 100 };

/** Ends after the last token that is asked for. */
const SCHEMA = { type: 'array', items: { type: 'string', maxLength: 40 }, minItems: 1000 };

/** What the engine's measurement changes in greedy requests. */
const CHANGES: Readonly<Record<string, Partial<SeededSampling> & Pick<Job, 'constraint'>>> = {
  greedy: { temperature: 0 },
  'temperature 1': { temperature: 1 },
  // Random weights give flat distributions, in which top-p alone keeps nearly all tokens.
  'temperature 0.8, top-k 40, top-p 0.95': { temperature: 0.8, topK: 40, topP: 0.95 },
  'temperature 1, logit_bias and a penalty': { temperature: 1, logitBias: [[7, 5]], frequencyPenalty: 0.5 },
  'temperature 1, JSON Schema': { temperature: 1, constraint: { type: 'json_schema', value: SCHEMA } },
};

export type Rates = Readonly<Record<string, string>>;

/** An engine in a thread of its own. */
export interface StartedEngine {
  readonly engine: EngineClient;
  readonly tokenizer: Tokenizer;
  /** Of all steps so far. */
  readonly reports: StepReport[];
  /** Of its start. */
  readonly warning: string | null;
}

/** @param engineLocks of a process with several engines */
export async function startEngine(
  { directory, device, batches }: Pick<ServedSetting, 'directory' | 'device' | 'batches'>,
  engineLocks?: SharedArrayBuffer,
): Promise<StartedEngine> {
  const tokenizer = Tokenizer.of(textsOf(directory));
  const reports: StepReport[] = [];
  const model = {
    directory,
    slots: Math.max(...batches),
    contextLength: CONTEXT,
    threads: availableParallelism(),
    kvLimitBytes: null,
    device,
    engineLocks,
  };
  const { tokenBytes, eosIds } = tokenizer;
  const engine = new EngineClient({
    spawn: () => spawnEngineThread({ model, tokenBytes, eosIds, maxWaiting: 1024 }),
    onSteps: (steps) => reports.push(...steps),
  });
  const { warning } = await engine.start();
  return { engine, tokenizer, reports, warning };
}

/** Tokens per second of decoding by change and number of streams, and milliseconds of a full step. */
export async function engineRates(setting: ServedSetting): Promise<Rates> {
  const { batches, promptTokens, tokens } = setting;
  const { engine, tokenizer, reports } = await startEngine(setting);
  const rates: Record<string, string> = {};
  try {
    for (const [name, { constraint, ...sampling }] of Object.entries(CHANGES)) {
      const target = engineTargetOf(name, engine, (job) => {
        const greedy = benchSubmission({ ...job, ...(constraint && { constraint }) }, tokenizer);
        return { ...greedy, sampling: { ...greedy.sampling, ...sampling } };
      });
      for (const batch of batches) {
        await loadOf(target, batch, promptTokens, 8);
        reports.length = 0;
        const perSecond = await loadOf(target, batch, promptTokens, tokens);
        const full = reports.filter(({ kind, rows }) => kind === 'decode' && rows === batch);
        const part = (ms: (report: StepReport) => number) => median(full.map(ms)).toFixed(2);
        const [run, draw, rest] = [
          part((report) => report.modelMs),
          part((report) => report.samplingMs),
          part((report) => report.otherMs),
        ];
        rates[`${name}, ${batch} streams`] =
          `${perSecond} tokens/s; run ${run} ms, sampling ${draw}, other ${rest}`;
      }
    }
  } finally {
    await engine.stop();
  }
  return rates;
}

/** Tokens per second of greedy decoding, by number of streams. */
export async function httpRates(setting: ServedSetting): Promise<Rates> {
  const { directory, device, batches } = setting;
  const size = sized(Math.max(...batches));
  return await withOrigin('HTTP', { directory, device }, size, (target) => decodeRatesOf(target, setting));
}

async function decodeRatesOf(
  target: Target,
  { batches, promptTokens, tokens }: Pick<ServedSetting, 'batches' | 'promptTokens' | 'tokens'>,
): Promise<Rates> {
  const rates: Record<string, string> = {};
  for (const batch of batches) {
    await loadOf(target, batch, promptTokens, 8);
    rates[`${batch} streams`] = `${await loadOf(target, batch, promptTokens, tokens)} tokens/s`;
  }
  return rates;
}

/**
 * What `httpRates` and `closedLoops` measure of the origin, of a rival's server.
 * @param onRates takes what has been measured so far
 */
export async function rivalRates(
  rival: Omit<Rival, 'assemble'>,
  setting: Omit<ServedSetting, 'device'> & Pick<ServerSetting, 'files' | 'python'>,
  onRates: (rates: Rates) => void,
): Promise<void> {
  const streams = Math.max(...setting.batches);
  await withRival(rival, { ...setting, contextLength: CONTEXT, streams }, async (target, started) => {
    const start = `${started.seconds.toFixed(1)} s`;
    const decode = await decodeRatesOf(target, setting);
    const rates = { start, notes: started.notes(), ...decode };
    onRates(rates);
    onRates({ ...rates, ...(await loopsOf(target, streams)) });
  });
}

/** Tokens of prompts and answers. */
const LOOPS = [
  [64, 100],
  [512, 128],
] as const;

/** As many requests at a time as there are slots; the next one begins when one ends. Prompts count. */
export async function closedLoops({ directory, device, batches }: ServedSetting): Promise<Rates> {
  const streams = Math.max(...batches);
  return await withOrigin('HTTP', { directory, device }, sized(streams), (target) =>
    loopsOf(target, streams),
  );
}

async function loopsOf(target: Target, streams: number): Promise<Rates> {
  const rates: Record<string, string> = {};
  for (const [prompt, maxTokens] of LOOPS) {
    const line = await lineOf(streams, 4 * streams, (index) =>
      target.run({ prompt: tokenIds(index, prompt), maxTokens }),
    );
    rates[`${prompt} + ${maxTokens} tokens, ${streams} streams`] = line;
  }
  return rates;
}

const BURSTS = 3;
const BURST_TOKENS = 16;
/** Of 128 streams 240, nearly the slots that an H200 has by default. */
const MORE_STREAMS = 15 / 8;

/** What an operator gets who sets the provider only. */
export async function outOfTheBox(setting: ServedSetting): Promise<Rates> {
  const { batches, promptTokens } = setting;
  const streams = Math.max(...batches);
  return await withOrigin('HTTP', setting, {}, async (target, origin) => {
    let rates = startOf(origin);
    // Prompts of no burst are those of another.
    for (let burst = 0; burst <= BURSTS; burst++) {
      const job = (index: number) => ({
        prompt: tokenIds(burst * streams + index, promptTokens),
        maxTokens: BURST_TOKENS,
      });
      const line = await lineOf(streams, streams, (index) => target.run(job(index)));
      const name = burst === 0 ? 'first' : `${burst}`;
      rates = { ...rates, [`burst of ${streams} prompts of ${promptTokens} tokens, ${name}`]: line };
    }
    for (const count of [streams, Math.round(MORE_STREAMS * streams)])
      rates = { ...rates, ...(await loopsOf(target, count)) };
    return rates;
  });
}

/** Returns what the origin's log says about its start. */
function startOf({ lines }: OriginProcess): Rates {
  const { slots, contextLength, msg } = lines.find((line) => 'contextLength' in line) ?? {};
  const { ms } = lines.find((line) => line.msg === 'loaded')!;
  const warnings = lines.filter(({ level }) => level !== 'info').map((line) => String(line.msg));
  return {
    start: `${slots} slots of ${contextLength}; loaded in ${ms} ms; ${msg}`,
    warnings: warnings.join('; ') || 'none',
  };
}

/** Returns the figures of a load. */
async function lineOf(
  concurrency: number,
  total: number,
  run: (index: number) => Promise<Trace>,
): Promise<string> {
  const begun = performance.now();
  const traces = await runLoad(concurrency, total, run);
  const figures = loadFigures(traces, performance.now() - begun);
  const ms = ({ p50, p99 }: LoadFigures['perToken']) => `${p50.toFixed(1)} / ${p99.toFixed(1)} ms`;
  return (
    `${figures.tokensPerSecond.toFixed(0)} tokens/s, ${figures.requestsPerSecond.toFixed(1)} requests/s, ` +
    `${figures.errors} errors; p50 / p99: TTFT ${ms(figures.timeToFirstToken)}, ` +
    `TPOT ${ms(figures.perToken)}, ITL ${ms(figures.interToken)}`
  );
}

/** Settings of an origin with this many slots. */
const sized = (slots: number) => ({ CONTINUO_SLOTS: String(slots), CONTINUO_CONTEXT: String(CONTEXT) });

/** Starts an origin, and stops it after its use. */
async function withOrigin<T>(
  name: string,
  { directory, device }: Pick<ServedSetting, 'directory' | 'device'>,
  variables: Readonly<Record<string, string>>,
  use: (target: Target, origin: OriginProcess) => Promise<T>,
): Promise<T> {
  // Libraries of devices may be found by the home directory or LD_LIBRARY_PATH.
  const machine = Object.entries(process.env).filter(([name]) => !name.startsWith('CONTINUO_'));
  const origin = new OriginProcess({
    ...(Object.fromEntries(machine) as Record<string, string>),
    CONTINUO_MODEL_DIR: directory,
    CONTINUO_MODEL_NAME: 'bench',
    CONTINUO_PROVIDER: device.provider,
    ...variables,
  });
  try {
    await origin.line('loaded');
    const { port } = await origin.line('listening');
    const url = `http://127.0.0.1:${port}`;
    const target = await originTarget(name, { url, secret: SECRET, model: 'bench' });
    const used = await use(target, origin);
    await target.close();
    return used;
  } finally {
    origin.child.kill('SIGKILL');
    await origin.exit;
  }
}

/** Prompts that were sent before, at an origin with a prefix store beside one without. */
export async function prefixGains(
  setting: Pick<ServedSetting, 'directory' | 'device'>,
): Promise<Record<string, string>> {
  const variables = (mib: number) => ({ ...sized(16), CONTINUO_PREFIX_CACHE_MIB: String(mib) });
  const plan = { concurrency: [4, 16], waves: 3, prompts: PROMPTS };
  const { targets, gains } = await withOrigin('with', setting, variables(4096), (stored) =>
    withOrigin('without', setting, variables(0), (plain) =>
      measureSharedPrefix([stored, plain], plan, () => {}, true),
    ),
  );
  const [stored = [], plain = []] = targets.map(({ measured }) => measured);
  const shown = ({ tokensPerSecond, firstTokenMs }: Measured) =>
    `${tokensPerSecond.toFixed(0)} tokens/s, first token ${firstTokenMs.toFixed(1)} ms`;
  const lines = stored.map((one, at) => [
    one.name,
    `without ${shown(plain[at]!)}; with ${shown(one)}; ratio ${gains[at]!.toFixed(2)}`,
  ]);
  return Object.fromEntries(lines);
}

export async function loadOf(
  target: Target,
  batch: number,
  promptTokens: number,
  maxTokens: number,
): Promise<string> {
  const job = (index: number) => ({ prompt: tokenIds(index, promptTokens), maxTokens });
  const { decodeTokensPerSecond, errors, reasons } = await measureLoad(target, batch, 1, job, () => {});
  if (errors > 0) throw new Error(`${errors} requests failed: ${reasons.join('; ')}`);
  return decodeTokensPerSecond.toFixed(0);
}
