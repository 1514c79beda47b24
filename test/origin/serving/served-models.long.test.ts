import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { GenerationRequest } from '../../../shared/generation.ts';
import { newDirectory } from '../../support/new-directory.ts';
import { writeByteTokenizer } from '../../support/synthetic/byte-tokenizer.ts';
import { type SyntheticModel, writeSyntheticModel } from '../../support/synthetic/synthetic-model.ts';
import { eventsOf } from '../http/generation-events.ts';
import { OriginProcess } from '../http/origin-process.ts';

/** Several models in one process: the built-in one and tiny random ones, declared in a file. */

const directory = newDirectory();
const file = join(directory, 'models.json');
const BUILT_IN = join(process.cwd(), 'origin/models/continuo-mini');

function writeModel(name: string, options: Partial<SyntheticModel> = {}): void {
  const { vocabulary } = writeSyntheticModel(join(directory, name), { vocabulary: 320, ...options });
  writeByteTokenizer(join(directory, name), vocabulary);
}

const mini = { name: 'mini', directory: BUILT_IN, slots: 4, context: 2048, aliases: ['default', 'story'] };
const alpha = { name: 'alpha', directory: 'alpha', load: 'first-use', idleSeconds: 1, slots: 2 };
const beta = { name: 'beta', directory: 'beta', slots: 2 };
const write = (...models: object[]) => writeFileSync(file, JSON.stringify({ models }));

let origin: OriginProcess;
beforeAll(async () => {
  writeModel('alpha', { seed: 2 });
  writeModel('beta', { seed: 3 });
  const recommended = { temperature: 0.4, top_k: 12, max_new_tokens: 9, eos_token_id: 319 };
  writeFileSync(join(directory, 'beta', 'generation_config.json'), JSON.stringify(recommended));
  write(mini, alpha, { ...beta, generationConfig: true, defaults: { topK: 5 } });
  origin = new OriginProcess({ CONTINUO_MODELS_FILE: file, CONTINUO_THREADS: '1' });
  for (const model of ['mini', 'beta']) await origin.line('loaded', { model });
});
afterAll(async () => {
  origin.child.kill('SIGTERM');
  expect(await origin.exit).toBe(0);
  expect(origin.stderr).toBe('');
});

const greedy = (model: string): Partial<GenerationRequest> => ({ model, maxTokens: 12, ignoreEos: true });
const answerOf = async (changes: Partial<GenerationRequest>) => {
  const response = await origin.generate(changes);
  expect(response.status, JSON.stringify(changes.model)).toBe(200);
  return eventsOf(response);
};
const modelOf = async (name: string) => (await answerOf(greedy(name)))[0];

async function refusal(model: string) {
  const response = await origin.generate({ model });
  const { error } = (await response.json()) as { error: { code: string } };
  return { status: response.status, code: error.code, headers: response.headers };
}

/** Repeats a refused request after each `retry-after` until it succeeds. A busy machine may need several. */
async function untilServed(model: string, refused: Headers): Promise<void> {
  for (let headers = refused; ; ) {
    await sleep(1000 * Number(headers.get('retry-after')));
    const response = await origin.generate(greedy(model));
    if (response.status === 200) {
      expect((await eventsOf(response))[0]).toMatchObject({ model });
      return;
    }
    expect(await response.json()).toMatchObject({ error: { code: 'model_loading' } });
    ({ headers } = response);
  }
}

/**
 * A model that gets no more requests is unloaded. On a busy machine it may have been before, between two
 * requests.
 */
const untilUnloaded = (model: string) =>
  expect.poll(async () => (await origin.models())[model]?.state).toBe('unloaded');

/** Rewrites the models file, reloads it and waits for the log line. */
async function reload(message: string, ...models: object[]) {
  const from = origin.lines.length;
  if (models.length > 0) write(...models);
  origin.child.kill('SIGHUP');
  return await origin.line(message, {}, from);
}

describe('several models in one origin', () => {
  test('two models answer side by side as they do separately, also by alias', async () => {
    const alone = [await answerOf(greedy('mini')), await answerOf(greedy('beta'))];
    const together = await Promise.all(['mini', 'beta'].map((model) => answerOf(greedy(model))));
    // The number of tokens per event depends on timing.
    const texts = (answers: typeof alone) =>
      answers.map((events) => events.map((event) => (event.type === 'token' ? event.text : '')).join(''));
    expect(texts(together)).toEqual(texts(alone));
    expect(texts(alone)[0]).not.toEqual(texts(alone)[1]);
    for (const name of ['story', 'default']) expect(await modelOf(name)).toMatchObject({ model: 'mini' });
    expect(await refusal('gamma')).toMatchObject({ status: 404, code: 'model_not_found' });
  });

  test('the model list has context, aliases, state and defaults', async () => {
    expect(await origin.models()).toMatchObject({
      mini: {
        aliases: ['default', 'story'],
        contextLength: 2048,
        state: 'loaded',
        infill: true,
        defaults: {},
      },
      alpha: { aliases: [], contextLength: 512, vocabularySize: 320, state: 'unloaded', infill: false },
      beta: { state: 'loaded', defaults: { temperature: 0.4, topK: 5, maxTokens: 9 } },
    });
    const health = await origin.operator('/health');
    expect([health.status, await health.json()]).toMatchObject([200, { status: 'ready' }]);
    const metrics = await (await origin.operator('/metrics')).text();
    expect(metrics).toContain('continuo_origin_model_state{model="alpha",state="unloaded"} 1');
    expect(metrics).toMatch(/continuo_origin_completion_tokens_total\{model="beta"\} [1-9]/);
  });

  test('first use gets 503 with a correct retry time; an idle model is unloaded and loaded again', async () => {
    const refused = await refusal('alpha');
    expect(refused).toMatchObject({ status: 503, code: 'model_loading' });
    await untilServed('alpha', refused.headers);
    await untilUnloaded('alpha');
    const again = await refusal('alpha');
    expect(again).toMatchObject({ code: 'model_loading' });
    await untilServed('alpha', again.headers);
    await untilUnloaded('alpha');
  });

  test('a faulty or too large configuration is one log line and changes nothing', async () => {
    await untilUnloaded('alpha');
    const before = await origin.models();
    writeFileSync(file, '{');
    const refused = 'reload failed; the old models stay';
    expect((await reload(refused)).reason).toMatch(/models\.json is not JSON \(.*line 1 column 2/);
    const damaged = { ...alpha, directory: 'nowhere' };
    expect((await reload(refused, mini, damaged)).reason).toMatch(
      /^alpha: the model directory .*nowhere is missing/,
    );
    writeFileSync(file, JSON.stringify({ memoryMiB: 40, models: [mini, beta] }));
    expect((await reload(refused)).reason).toMatch(
      /^the models need \d+ MiB, but memoryMiB is 40: mini 13 MiB of weights and \d+ MiB of KV cache, beta 1 MiB/,
    );
    expect(await origin.models()).toEqual(before);
    expect(await modelOf('mini')).toMatchObject({ model: 'mini' });
  });

  test('a model that cannot be loaded is reported once and not retried until the next reload', async () => {
    writeModel('broken', { externalData: true });
    const weights = join(directory, 'broken', 'model.onnx.data');
    const sound = readFileSync(weights);
    writeFileSync(weights, new Uint8Array(sound.length).fill(0xff));
    const broken = { name: 'broken', directory: 'broken', load: 'first-use', slots: 1 };
    await reload('models reloaded', mini, alpha, beta, broken);
    expect(await refusal('broken')).toMatchObject({ status: 503, code: 'model_loading' });
    expect((await origin.line('loading failed')).reason).toBe(
      'model.onnx gives logits that are not finite numbers',
    );
    for (let attempt = 0; attempt < 3; attempt += 1) {
      const refused = await refusal('broken');
      expect(refused).toMatchObject({ status: 503, code: 'model_unavailable' });
      expect(refused.headers.get('x-should-retry')).toBe('false');
    }
    expect(origin.lines.filter(({ msg }) => msg === 'loading failed')).toHaveLength(1);
    expect((await origin.models()).broken?.state).toBe('failed');
    writeFileSync(weights, sound);
    await reload('models reloaded');
    expect(await refusal('broken')).toMatchObject({ code: 'model_loading' });
    await origin.line('loaded', { model: 'broken' });
    expect(await modelOf('broken')).toMatchObject({ model: 'broken' });
  });

  test('a reload interrupts no stream: changed models are replaced beside it, removed ones end after it', async () => {
    await reload('models reloaded', mini, beta);
    const from = origin.lines.length;
    const long = { maxTokens: 1000, ignoreEos: true, choices: 3, deadlineMs: 290_000 };
    const streams = [
      await origin.generate({ ...long, model: 'mini' }),
      await origin.generate({ ...long, model: 'beta', maxTokens: 490 }),
    ];
    const last = Promise.all(streams.map(async (stream) => (await eventsOf(stream)).at(-1)));
    const gamma = { ...beta, name: 'gamma' };
    await reload('models reloaded', { ...mini, slots: 3 }, gamma);
    expect(await refusal('beta')).toMatchObject({ status: 404 });
    // The old engine goes on until the new one has been loaded.
    expect(await modelOf('mini')).toMatchObject({ model: 'mini' });
    await origin.line('loaded', { model: 'gamma' }, from);
    await origin.line('loaded', { model: 'mini' }, from);
    expect(await modelOf('mini')).toMatchObject({ model: 'mini' });
    expect(await last).toMatchObject([
      { type: 'done', usage: { completionTokens: 3000 } },
      { type: 'done', usage: { completionTokens: 1470 } },
    ]);
    for (const model of ['mini', 'beta']) await origin.line('unloaded', { model }, from);
    const order = origin.lines.slice(from).map(({ msg, model }) => `${msg} ${model}`);
    expect(order.indexOf('loaded mini')).toBeLessThan(order.lastIndexOf('generation mini'));
    expect(order.lastIndexOf('generation beta')).toBeLessThan(order.indexOf('unloaded beta'));
    expect(order.indexOf('loaded mini')).toBeLessThan(order.indexOf('unloaded mini'));
  });
});
