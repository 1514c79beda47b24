import { availableParallelism } from 'node:os';
import { type LoadFigures, loadFigures, runLoad } from '../../../origin/cli/load.ts';
import type { SeededSampling, StepReport } from '../../../origin/engine/messages.ts';
import { EngineClient, spawnEngineThread } from '../../../origin/engine/thread/engine-client.ts';
import type { DeviceSettings } from '../../../origin/model/config/device.ts';
import { textsOf } from '../../../origin/model/config/model-directory.ts';
import { Tokenizer } from '../../../origin/tokenizer/tokenizer.ts';
import { OriginProcess, SECRET } from '../../origin/http/origin-process.ts';
import { benchSubmission, engineTargetOf } from '../bench/engine-target.ts';
import { measureLoad } from '../bench/load.ts';
import { tokenIds } from '../bench/plan.ts';
import { type Measured, measureSharedPrefix, PROMPTS } from '../bench/shared-prefix.ts';
import { median } from '../bench/statistics.ts';
import { type Job, originTarget, type Target } from '../bench/target.ts';

export interface ServedSetting {
  readonly directory: string;
  readonly device: DeviceSettings;
  readonly batches: readonly number[];
  readonly promptTokens: number;
  readonly tokens: number;
}

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

type Rates = Readonly<Record<string, string>>;

/** Tokens per second of decoding by change and number of streams, and milliseconds of a full step. */
export async function engineRates({
  directory,
  device,
  batches,
  promptTokens,
  tokens,
}: ServedSetting): Promise<Rates> {
  const tokenizer = Tokenizer.of(textsOf(directory));
  const slots = Math.max(...batches);
  const reports: StepReport[] = [];
  const model = {
    directory,
    slots,
    contextLength: 2048,
    threads: availableParallelism(),
    kvLimitBytes: null,
    device,
  };
  const { tokenBytes, eosIds } = tokenizer;
  const engine = new EngineClient({
    spawn: () => spawnEngineThread({ model, tokenBytes, eosIds, maxWaiting: 1024 }),
    onSteps: (steps) => reports.push(...steps),
  });
  await engine.start();
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
export async function httpRates({
  directory,
  device,
  batches,
  promptTokens,
  tokens,
}: ServedSetting): Promise<Rates> {
  const slots = Math.max(...batches);
  return await withOrigin('HTTP', { directory, device, slots }, {}, async (target) => {
    const rates: Record<string, string> = {};
    for (const batch of batches) {
      await loadOf(target, batch, promptTokens, 8);
      rates[`${batch} streams`] = `${await loadOf(target, batch, promptTokens, tokens)} tokens/s`;
    }
    return rates;
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
  return await withOrigin('HTTP', { directory, device, slots: streams }, {}, async (target) => {
    const rates: Record<string, string> = {};
    for (const [prompt, maxTokens] of LOOPS) {
      const begun = performance.now();
      const traces = await runLoad(streams, 4 * streams, (index) =>
        target.run({ prompt: tokenIds(index, prompt), maxTokens }),
      );
      rates[`${prompt} + ${maxTokens} tokens, ${streams} streams`] = lineOf(
        loadFigures(traces, performance.now() - begun),
      );
    }
    return rates;
  });
}

function lineOf(figures: LoadFigures): string {
  const ms = ({ p50, p99 }: LoadFigures['perToken']) => `${p50.toFixed(1)} / ${p99.toFixed(1)} ms`;
  return (
    `${figures.tokensPerSecond.toFixed(0)} tokens/s, ${figures.requestsPerSecond.toFixed(1)} requests/s, ` +
    `${figures.errors} errors; p50 / p99: TTFT ${ms(figures.timeToFirstToken)}, ` +
    `TPOT ${ms(figures.perToken)}, ITL ${ms(figures.interToken)}`
  );
}

interface OriginSetting extends Pick<ServedSetting, 'directory' | 'device'> {
  readonly slots: number;
}

/** Starts an origin, and stops it after its use. */
async function withOrigin<T>(
  name: string,
  { directory, device, slots }: OriginSetting,
  variables: Readonly<Record<string, string>>,
  use: (target: Target) => Promise<T>,
): Promise<T> {
  // Libraries of devices may be found by the home directory or LD_LIBRARY_PATH.
  const machine = Object.entries(process.env).filter(([name]) => !name.startsWith('CONTINUO_'));
  const origin = new OriginProcess({
    ...(Object.fromEntries(machine) as Record<string, string>),
    CONTINUO_MODEL_DIR: directory,
    CONTINUO_MODEL_NAME: 'bench',
    CONTINUO_PROVIDER: device.provider,
    CONTINUO_SLOTS: String(slots),
    CONTINUO_CONTEXT: '2048',
    ...variables,
  });
  try {
    await origin.line('loaded');
    const { port } = await origin.line('listening');
    const url = `http://127.0.0.1:${port}`;
    const target = await originTarget(name, { url, secret: SECRET, model: 'bench' });
    const used = await use(target);
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
  const size = { ...setting, slots: 16 };
  const plan = { concurrency: [4, 16], waves: 3, prompts: PROMPTS };
  const { targets, gains } = await withOrigin('with', size, { CONTINUO_PREFIX_CACHE_MIB: '4096' }, (stored) =>
    withOrigin('without', size, { CONTINUO_PREFIX_CACHE_MIB: '0' }, (plain) =>
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

async function loadOf(
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
