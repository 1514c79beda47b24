import type { ChildProcess } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { serve } from '../support/local-server.ts';
import { newDirectory } from '../support/new-directory.ts';
import { writeByteTokenizer } from '../support/synthetic/byte-tokenizer.ts';
import { writeSyntheticModel } from '../support/synthetic/synthetic-model.ts';
import { eventsOf } from './http/generation-events.ts';
import { OriginProcess, SECRET } from './http/origin-process.ts';

/** The origin process: errors that prevent the start, and shutdown. */

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

/** One fault of each thing that a start reads, in order. What else is wrong with it has tests of its own. */
describe.concurrent('a start that cannot succeed is exit code 1 and one line on stderr', () => {
  const notNumbers = () => {
    const directory = newDirectory();
    writeByteTokenizer(
      directory,
      writeSyntheticModel(directory, { vocabulary: 320, externalData: true }).vocabulary,
    );
    writeFileSync(join(directory, 'model.onnx.data'), new Uint8Array(2 ** 20).fill(0xff));
    return directory;
  };

  test.each([
    ['a misspelled variable', { CONTINUO_SLOT: '2' }, /CONTINUO_SLOT: .*CONTINUO_SLOTS/],
    [
      'a file in the place of the directory for prefixes',
      { CONTINUO_PREFIX_CACHE_DIR: import.meta.filename },
      /^continuo origin: CONTINUO_PREFIX_CACHE_DIR: .*main\.long\.test\.ts cannot be used \(ENOTDIR: not a directory,[^\n]*\); name a directory/,
    ],
    [
      'a file of models that is missing',
      { CONTINUO_MODELS_FILE: '/nowhere/models.json' },
      /models\.json cannot be read \(ENOENT/,
    ],
    [
      'a missing model',
      { CONTINUO_MODEL_DIR: '/nowhere' },
      /model directory \/nowhere is missing.*CONTINUO_MODEL_DIR/,
    ],
    [
      'weights that are not numbers',
      { CONTINUO_MODEL_DIR: notNumbers() },
      /gives logits that are not finite numbers/,
    ],
  ])('%s', async (_, environment: Record<string, string>, message) => {
    const origin = start(environment);
    expect(await origin.exit).toBe(1);
    expect(origin.stderr).toMatch(message);
    expect(origin.stderr).toMatch(/^continuo origin: [^\n]+\n$/);
  });

  test('a taken port', async () => {
    const { port, stop } = await serve(() => {});
    const origin = start({ CONTINUO_ORIGIN_PORT: String(port) });
    expect(await origin.exit).toBe(1);
    expect(origin.stderr).toBe(`continuo origin: cannot listen on 127.0.0.1: port ${port} is taken\n`);
    await stop();
  });
});

describe('a running origin', () => {
  test('a SIGHUP before the models have been read does not end it', async () => {
    const file = join(newDirectory(), 'models.json');
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
