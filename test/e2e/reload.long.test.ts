import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { completionResponse } from '../../shared/completion-response.ts';
import { writeByteTokenizer } from '../support/synthetic/byte-tokenizer.ts';
import { writeSyntheticModel } from '../support/synthetic/synthetic-model.ts';
import { type System, startSystem } from '../support/system.ts';
import { chunksOf } from '../worker/support/sse.ts';

/** Tests several models behind `npm start`: requests by name, and a reload while a stream runs. */

const directory = mkdtempSync(join(tmpdir(), 'continuo-several-'));
const file = join(directory, 'models.json');
const write = (...models: object[]) => writeFileSync(file, JSON.stringify({ models }));

const mini = {
  name: 'mini',
  directory: join(process.cwd(), 'origin/models/continuo-mini'),
  aliases: ['default'],
};
const tiny = { name: 'tiny', directory: 'tiny', slots: 2 };
const later = { name: 'later', directory: 'tiny', slots: 2, load: 'first-use' };

let system: System;
beforeAll(async () => {
  const { vocabulary } = writeSyntheticModel(join(directory, 'tiny'), {
    vocabulary: 320,
    contextLength: 4096,
  });
  writeByteTokenizer(join(directory, 'tiny'), vocabulary);
  write(mini, tiny);
  system = await startSystem({ CONTINUO_MODELS_FILE: file });
});
afterAll(async () => {
  await system.stop();
  rmSync(directory, { recursive: true, force: true });
});

const ask = (path: string, body?: object) =>
  fetch(`${system.url}${path}`, {
    headers: { authorization: `Bearer ${system.apiKey}`, 'content-type': 'application/json' },
    ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
  });

async function textOf(model: string): Promise<string> {
  const greedy = { prompt: 'Once upon a time', max_tokens: 12, temperature: 0, ignore_eos: true };
  const response = await ask('/v1/completions', { model, ...greedy });
  expect(response.status, model).toBe(200);
  const completion = completionResponse.parse(await response.json());
  expect(completion.model).toBe(model);
  return completion.choices[0]!.text;
}

async function listed(): Promise<Record<string, { root: string; state: string }>> {
  const { data } = (await (await ask('/v1/models')).json()) as {
    data: { id: string; root: string; state: string }[];
  };
  return Object.fromEntries(data.map(({ id, root, state }) => [id, { root, state }]));
}

/** The Worker caches for a short time which models an origin serves. */
const eventually = (models: Awaited<ReturnType<typeof listed>>) => expect.poll(listed).toEqual(models);

/** Index of the origin's last log line with this message; −1 = none. */
const lastLine = (message: string): number =>
  system
    .log('origin')
    .split('\n')
    .findLastIndex((line) => line.includes(`"msg":"${message}"`));

test('both models answer by name, and `default` is the one with that alias', async () => {
  const [story, noise] = [await textOf('mini'), await textOf('tiny')];
  expect(noise).not.toBe(story);
  expect(await textOf('default')).toBe(story);
  await eventually({
    mini: { root: 'mini', state: 'loaded' },
    default: { root: 'mini', state: 'loaded' },
    tiny: { root: 'tiny', state: 'loaded' },
  });
  expect((await ask('/v1/completions', { model: 'later', prompt: 'x' })).status).toBe(404);
});

test('SIGHUP replaces one model by another without interrupting its stream', async () => {
  // More tokens than are generated during the reload.
  const [tokens, n] = [4000, 1];
  const body = { model: 'tiny', prompt: 'x', max_tokens: tokens, n, ignore_eos: true, stream: true };
  const options = { stream_options: { include_usage: true } };
  const response = await ask('/v1/completions', { ...body, ...options });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = (await reader.read()).value ?? '';
  write(mini, later);
  process.kill(system.originPid(), 'SIGHUP');
  for (let part = await reader.read(); !part.done; part = await reader.read()) text += part.value;

  const chunks = chunksOf(text);
  expect(chunks.flatMap(({ choices }) => choices).at(-1)?.finish_reason).toBe('length');
  expect(chunks.at(-1)?.usage?.completion_tokens).toBe(n * tokens);
  // The reload finished before the stream ended: the stream's log line is the later one.
  await expect
    .poll(() => lastLine('models reloaded') > 0 && lastLine('generation') > lastLine('models reloaded'))
    .toBe(true);

  await eventually({
    mini: { root: 'mini', state: 'loaded' },
    default: { root: 'mini', state: 'loaded' },
    later: { root: 'later', state: 'unloaded' },
  });
  expect((await ask('/v1/completions', { model: 'tiny', prompt: 'x' })).status).toBe(404);
  const refused = await ask('/v1/completions', { model: 'later', prompt: 'x', max_tokens: 2 });
  expect(refused.status).toBe(503);
  expect(await refused.json()).toMatchObject({ error: { code: 'model_loading' } });
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  await expect.poll(async () => (await listed()).later?.state).toBe('loaded');
  await textOf('later');
});
