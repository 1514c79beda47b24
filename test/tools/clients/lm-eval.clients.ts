import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, inject, test } from 'vitest';
import { loglikelihood, texts, tokenize, tokenizerInfo } from './direct.ts';
import { runPython } from './python.ts';

/** lm-evaluation-harness, `local-completions`, on the three tiny tasks in this folder. */

interface Sample {
  readonly doc_id: number;
  readonly arguments: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly filtered_resps: readonly unknown[];
  readonly target: string;
  readonly acc?: number;
}

interface Evaluation {
  readonly results: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** By task, in the order of its documents. */
  readonly samples: Readonly<Record<string, readonly Sample[]>>;
}

const TASKS = path.join(import.meta.dirname, 'lm-eval');
const python = inject('python');
const served = inject('served');

function readEvaluation(home: string, tasks: readonly string[]): Evaluation {
  const only = (pattern: string) =>
    readFileSync(globSync(`${home}/results/**/${pattern}`)[0] as string, 'utf8');
  const { results } = JSON.parse(only('results_*.json')) as Evaluation;
  const samplesOf = (task: string) =>
    only(`samples_${task}_*.jsonl`)
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Sample)
      .toSorted((a, b) => a.doc_id - b.doc_id);
  return { results, samples: Object.fromEntries(tasks.map((task) => [task, samplesOf(task)])) };
}

/** Runs the harness's command line. */
function evaluate(tasks: readonly string[], options: Readonly<Record<string, string>>, batch: number) {
  const model = { model: 'default', base_url: `${served.url}/v1/completions`, max_retries: '1', ...options };
  const settings = Object.entries(model).map(([name, value]) => `${name}=${value}`);
  const args = [
    ...['-m', 'lm_eval', '--model', 'local-completions', '--model_args', settings.join(',')],
    ...['--tasks', tasks.join(','), '--include_path', '.', '--batch_size', String(batch)],
    ...['--log_samples', '--output_path', '{home}/results'],
  ];
  const where = { cwd: TASKS, env: { OPENAI_API_KEY: served.apiKey } };
  return runPython(python as string, args, where, (_, home) => readEvaluation(home, tasks));
}

const ALL = ['continuo_choice', 'continuo_rolling', 'continuo_generate'];
const REMOTE = { tokenizer_backend: 'remote', auth_token: served.apiKey };

/** Tolerance for sums of the same float32 values: the order of the float64 additions may differ. */
const SUM_DIGITS = 9;

async function expectChoices({ results, samples }: Evaluation): Promise<void> {
  let right = 0;
  const choices = samples.continuo_choice ?? [];
  expect(choices).toHaveLength(5);
  for (const sample of choices) {
    const direct: [number, boolean][] = [];
    for (const { arg_0, arg_1 } of Object.values(sample.arguments)) {
      // The harness moves white space from the end of a context to the continuation.
      const context = await tokenize((arg_0 as string).trimEnd());
      const whole = await tokenize(`${arg_0}${arg_1}`);
      direct.push(await loglikelihood(context, whole.slice(context.length)));
    }
    expect(direct).toHaveLength(3);
    for (const [at, [value, greedy]] of direct.entries()) {
      const [reported, isGreedy] = sample.filtered_resps[at] as [string, string];
      expect(Number(reported)).toBeCloseTo(value, SUM_DIGITS);
      expect(isGreedy).toBe(greedy ? 'True' : 'False');
    }
    const values = direct.map(([value]) => value);
    const hit = values.indexOf(Math.max(...values)) === Number(sample.target);
    expect(sample.acc).toBe(hit ? 1 : 0);
    right += hit ? 1 : 0;
  }
  expect(results.continuo_choice?.['acc,none']).toBeCloseTo(right / 5, 12);
}

async function expectRolling({ results, samples }: Evaluation): Promise<void> {
  const { bos_token } = await tokenizerInfo();
  const prefix = await tokenize(bos_token);
  expect(prefix).toHaveLength(1);
  let [nats, bytes] = [0, 0];
  expect(samples.continuo_rolling).toHaveLength(4);
  for (const { filtered_resps, target } of samples.continuo_rolling ?? []) {
    const [value] = await loglikelihood(prefix, await tokenize(target));
    expect(Number(filtered_resps[0])).toBeCloseTo(value, SUM_DIGITS);
    nats += value;
    bytes += Buffer.byteLength(target);
  }
  expect(results.continuo_rolling?.['bits_per_byte,none']).toBeCloseTo(-nats / bytes / Math.LN2, SUM_DIGITS);
}

/** @param eos stop text that the harness adds if it has a tokenizer */
async function expectGenerations({ samples }: Evaluation, eos: readonly string[]): Promise<void> {
  expect(samples.continuo_generate).toHaveLength(4);
  for (const { arguments: calls, filtered_resps } of samples.continuo_generate ?? []) {
    const { arg_0: prompt, arg_1: settings } = calls.gen_args_0 ?? {};
    const { until } = settings as { until: string[] };
    const stop = [...until, ...eos];
    const direct = await texts({ prompt, max_tokens: 24, temperature: 0, seed: 1234, stop });
    expect(filtered_resps).toEqual(direct);
    expect(stop.filter((text) => direct[0]?.includes(text))).toEqual([]);
  }
}

describe.skipIf(python === null)('lm-evaluation-harness', () => {
  let batched: Evaluation;
  beforeAll(async () => {
    batched = await evaluate(ALL, { ...REMOTE, num_concurrent: '1' }, 4);
  });

  test('scores choices in batches of token ids like single requests', () => expectChoices(batched));

  test('scores whole texts after the beginning-of-text token', () => expectRolling(batched));

  test('generates until one of more than four stop strings', async () => {
    await expectGenerations(batched, [(await tokenizerInfo()).eos_token]);
  });

  test('gets the same bits from concurrent single-prompt requests as from batches', async () => {
    const concurrent = await evaluate(ALL, { ...REMOTE, num_concurrent: '4' }, 1);
    for (const task of ALL) {
      const responses = ({ samples }: Evaluation) => samples[task]?.map((sample) => sample.filtered_resps);
      expect(responses(concurrent)).toEqual(responses(batched));
    }
  });

  test('scores the same if it sends texts in place of token ids', async () => {
    await expectChoices(await evaluate(['continuo_choice'], { ...REMOTE, tokenized_requests: 'False' }, 4));
  });

  test('detects the remote tokenizer', async () => {
    await expectChoices(await evaluate(['continuo_choice'], { auth_token: served.apiKey }, 1));
  });

  test('generates from texts without a tokenizer', async () => {
    await expectGenerations(await evaluate(['continuo_generate'], { tokenizer_backend: 'none' }, 1), []);
  });
});
