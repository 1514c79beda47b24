import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { writeByteTokenizer } from '../support/synthetic/byte-tokenizer.ts';
import { writeSyntheticModel } from '../support/synthetic/synthetic-model.ts';
import { eventsOf } from './http/generation-events.ts';
import { OriginProcess, SECRET } from './http/origin-process.ts';
import { byteLevelTokenizer, modelDirectory } from './tokenizer/fixtures.ts';

/** The origin process: errors that prevent the start, and shutdown. */

const WITHOUT_WEIGHTS = modelDirectory({ 'tokenizer.json': byteLevelTokenizer([]) });
const running = new Set<ChildProcess>();
afterAll(() => {
  for (const child of running) child.kill('SIGKILL');
});

function start(environment: Record<string, string> = {}): OriginProcess {
  const origin = new OriginProcess(environment);
  running.add(origin.child);
  void origin.exit.then(() => running.delete(origin.child));
  return origin;
}

describe.concurrent('a start that cannot succeed is exit code 1 and one line on stderr', () => {
  test.each([
    ['a wrong value', { CONTINUO_SLOTS: 'many' }, /CONTINUO_SLOTS: /],
    [
      'a missing model',
      { CONTINUO_MODEL_DIR: '/nowhere' },
      /model directory \/nowhere is missing.*CONTINUO_MODEL_DIR/,
    ],
    [
      'a file in the place of the directory for prefixes',
      { CONTINUO_PREFIX_CACHE_DIR: import.meta.filename },
      /^continuo origin: CONTINUO_PREFIX_CACHE_DIR: .*main\.long\.test\.ts cannot be used \(ENOTDIR: not a directory,[^\n]*\); name a directory/,
    ],
    ['a misspelled variable', { CONTINUO_SLOT: '2' }, /CONTINUO_SLOT: .*CONTINUO_SLOTS/],
    ['a model without weights', { CONTINUO_MODEL_DIR: WITHOUT_WEIGHTS }, /model\.onnx|config\.json/],
    ['a context the model was not made for', { CONTINUO_CONTEXT: '1000000' }, /context of 1000000/],
    [
      'a device id without CUDA',
      { CONTINUO_DEVICE_ID: '0' },
      /a device id is set, .* the provider cpu ignores it/,
    ],
    ['a KV cache above its limit', { CONTINUO_KV_MEMORY_MIB: '1' }, /KV|memory/i],
  ])('%s', async (_, environment: Record<string, string>, message) => {
    const origin = start(environment);
    expect(await origin.exit).toBe(1);
    expect(origin.stderr).toMatch(message);
    expect(origin.stderr).toMatch(/^continuo origin: [^\n]+\n$/);
  });

  const DATA = 'model.onnx.data';
  const damages: readonly [string, (directory: string) => void, RegExp][] = [
    [
      'a truncated graph',
      (directory) => truncateSync(join(directory, 'model.onnx'), 2000),
      /model\.onnx is truncated/,
    ],
    [
      'truncated weights',
      (directory) => truncateSync(join(directory, DATA), 100_000),
      /model\.onnx needs \d+ bytes of model\.onnx\.data for .+, but the file has 100000/,
    ],
    [
      'missing weights',
      (directory) => rmSync(join(directory, DATA)),
      /keeps its weights in model\.onnx\.data, which/,
    ],
    [
      'weights that are not numbers',
      (directory) => writeFileSync(join(directory, DATA), new Uint8Array(2 ** 20).fill(0xff)),
      /gives logits that are not finite numbers/,
    ],
    [
      'a tokenizer cut in the middle',
      (directory) => truncateSync(join(directory, 'tokenizer.json'), 500),
      /tokenizer\.json is not valid JSON/,
    ],
    [
      'a tokenizer of another kind',
      (directory) => writeFileSync(join(directory, 'tokenizer.json'), '{"model":{"type":"WordLevel"}}'),
      /tokenizer\.json: model\.type/,
    ],
    [
      'a generation_config.json that asks for the impossible',
      (directory) => writeFileSync(join(directory, 'generation_config.json'), '{"temperature":-1}'),
      /generation_config\.json: temperature: /,
    ],
  ];

  test.each(damages)('%s', async (_, damage, message) => {
    const directory = mkdtempSync(join(tmpdir(), 'continuo-damaged-'));
    writeByteTokenizer(
      directory,
      writeSyntheticModel(directory, { vocabulary: 320, externalData: true }).vocabulary,
    );
    damage(directory);
    const origin = start({ CONTINUO_MODEL_DIR: directory, CONTINUO_GENERATION_CONFIG: 'true' });
    expect(await origin.exit).toBe(1);
    expect(origin.stderr).toMatch(message);
    expect(origin.stderr).toMatch(/^continuo origin: [^\n]+\n$/);
    rmSync(directory, { recursive: true });
  });

  test.each([
    ['a models’ file that is missing', null, /models\.json cannot be read \(ENOENT/],
    ['one with an unknown field', { models: [{ name: 'a', directory: 'a', slot: 1 }] }, /models\.0: .*slot/],
    ['one with a wrong value', { models: [{ name: 'a', directory: 'a', slots: 0 }] }, /models\.0\.slots: /],
    [
      'one that gives a name twice',
      { models: ['a', 'b'].map((name) => ({ name, directory: 'x', aliases: ['c'] })) },
      /models\.1\.aliases\.0: the name c is used twice/,
    ],
  ])('%s', async (_, content, message) => {
    const file = join(mkdtempSync(join(tmpdir(), 'continuo-models-')), 'models.json');
    if (content !== null) writeFileSync(file, JSON.stringify(content));
    const origin = start({ CONTINUO_MODELS_FILE: file });
    expect(await origin.exit).toBe(1);
    expect(origin.stderr).toMatch(message);
    expect(origin.stderr).toMatch(/^continuo origin: [^\n]+\n$/);
  });

  test('a taken port', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    const origin = start({ CONTINUO_ORIGIN_PORT: String(port) });
    expect(await origin.exit).toBe(1);
    expect(origin.stderr).toBe(`continuo origin: cannot listen on 127.0.0.1: port ${port} is taken\n`);
    taken.close();
  });
});

describe('a running origin', () => {
  test('a SIGHUP before the models have been read does not end it', async () => {
    const file = join(mkdtempSync(join(tmpdir(), 'continuo-models-')), 'models.json');
    const directory = join(process.cwd(), 'origin/models/continuo-mini');
    const models = ['a', 'b', 'c'].map((name) => ({ name, directory, load: 'first-use' }));
    writeFileSync(file, JSON.stringify({ models }));
    const origin = start({ CONTINUO_MODELS_FILE: file });
    await origin.line('listening');
    origin.child.kill('SIGHUP');
    await origin.line('models reloaded');
    origin.child.kill('SIGTERM');
    expect(await origin.exit).toBe(0);
  });

  test('infills, and on SIGTERM ends connections, then takes no more, finishes what runs, and exits with 0', async () => {
    const origin = start({ CONTINUO_DRAIN_SECONDS: '600' });
    await origin.line(/KV cache/);
    const infill = await origin.generate({
      prompts: ['def add(a, b):\n    return '],
      suffix: '\n\nprint(add(1, 2))\n',
      maxTokens: 8,
      echo: true,
    });
    const infilled = await eventsOf(infill);
    expect(infilled.map(({ type }) => type).slice(0, 3)).toEqual(['accepted', 'prompt', 'started']);
    expect(infilled.at(-1)?.type).toBe('done');
    expect(JSON.stringify(infilled)).not.toContain('<|fim');

    const prompts = ['The PROMPT of this test'];
    const before = performance.now();
    await eventsOf(await origin.generate({ maxTokens: 100, ignoreEos: true }));
    const stepMs = (performance.now() - before) / 100;
    // Four times the time until a request comes that is not taken any more.
    const maxTokens = Math.min(1900, Math.ceil(8_000 / stepMs));
    const long = { maxTokens, ignoreEos: true, deadlineMs: 600_000 };
    const response = await origin.generate({ prompts, ...long });
    expect(response.status).toBe(200);
    origin.child.kill('SIGTERM');
    await origin.line('draining');
    const late = await origin.generate({ maxTokens: 1 });
    expect([late.status, late.headers.get('connection')]).toEqual([200, 'close']);
    expect((await eventsOf(late)).at(-1)?.type).toBe('done');
    const asked = async () => {
      const answer = await origin.generate({ maxTokens: 1 });
      await answer.text();
      return answer.status;
    };
    await expect.poll(asked).toBe(503);
    const last = (await eventsOf(response)).at(-1);
    expect(last).toMatchObject({ type: 'done', usage: { completionTokens: maxTokens } });
    expect(await origin.exit).toBe(0);
    expect(origin.stderr).toBe('');
    for (const secret of [SECRET, 'PROMPT']) expect(origin.stdout).not.toContain(secret);
  });

  test('exits at once on a second signal', async () => {
    const origin = start({ CONTINUO_DRAIN_SECONDS: '600' });
    await origin.line(/KV cache/);
    const controller = new AbortController();
    const response = await origin.generate({ maxTokens: -1, ignoreEos: true, choices: 8 }, controller.signal);
    expect(response.status).toBe(200);
    origin.child.kill('SIGINT');
    await origin.line('draining');
    origin.child.kill('SIGINT');
    expect(await origin.exit).toBe(130);
    controller.abort();
    await response.text().catch(() => undefined);
  });

  test('ends a drain that takes too long, telling the readers', async () => {
    const origin = start({ CONTINUO_DRAIN_SECONDS: '0' });
    await origin.line(/KV cache/);
    const response = await origin.generate({ maxTokens: -1, ignoreEos: true, choices: 8 });
    origin.child.kill('SIGTERM');
    expect((await response.text()).trimEnd().split('\n').at(-1)).toContain('"type":"error"');
    expect(await origin.exit).toBe(0);
  });
});
