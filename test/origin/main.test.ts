import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { generationEvent } from '../../shared/generation.ts';
import { importSigningKey, SIGNATURE_HEADER, sign } from '../../shared/signing.ts';
import { request } from '../support/generation-request.ts';
import { byteLevelTokenizer, modelDirectory } from '../unit/tokenizer/fixtures.ts';

/** The process itself: what stops its start, and how it ends. */

const SECRET = 'a secret of the tests';
const WITHOUT_WEIGHTS = modelDirectory({ 'tokenizer.json': byteLevelTokenizer([]) });
const running = new Set<ChildProcess>();
afterEach(() => {
  for (const child of running) child.kill('SIGKILL');
});

interface Process {
  readonly child: ChildProcess;
  readonly exit: Promise<number | null>;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Resolves with the first log line that has this message. */
  line(message: string | RegExp): Promise<Record<string, unknown>>;
}

function start(environment: Record<string, string> = {}): Process {
  const env = {
    PATH: process.env.PATH,
    CONTINUO_ORIGIN_SECRET: SECRET,
    CONTINUO_ORIGIN_PORT: '0',
    ...environment,
  };
  const child = spawn(process.execPath, ['origin/main.ts'], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  running.add(child);
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const line = async (message: string | RegExp) => {
    for (;;) {
      const lines = stdout
        .split('\n')
        .slice(0, -1)
        .map((text) => JSON.parse(text) as Record<string, unknown>);
      const found = lines.find(({ msg }) =>
        typeof message === 'string' ? msg === message : message.test(String(msg)),
      );
      if (found) return found;
      await Promise.race([once(child.stdout, 'data'), once(child, 'exit')]);
      if (child.exitCode !== null) throw new Error(`ended early: ${stderr}`);
    }
  };
  const exit = once(child, 'close').then(([code]) => {
    running.delete(child);
    return code as number | null;
  });
  return { child, exit, stdout: () => stdout, stderr: () => stderr, line };
}

describe('a start that cannot succeed is exit code 1 and one line on stderr', () => {
  test.each([
    ['a wrong value', { CONTINUO_SLOTS: 'many' }, /CONTINUO_SLOTS: /],
    ['a missing model', { CONTINUO_MODEL_DIR: '/nowhere' }, /tokenizer\.json: the file is missing/],
    ['a model without weights', { CONTINUO_MODEL_DIR: WITHOUT_WEIGHTS }, /model\.onnx|config\.json/],
    ['a context the model was not made for', { CONTINUO_CONTEXT: '1000000' }, /context of 1000000/],
    ['a KV cache above its limit', { CONTINUO_KV_MEMORY_MIB: '1' }, /KV|memory/i],
  ])('%s', async (_, environment: Record<string, string>, message) => {
    const { exit, stderr } = start(environment);
    expect(await exit).toBe(1);
    expect(stderr()).toMatch(message);
    expect(stderr()).toMatch(/^continuo origin: [^\n]+\n$/);
  });

  test('a taken port', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    const { exit, stderr } = start({ CONTINUO_ORIGIN_PORT: String(port) });
    expect(await exit).toBe(1);
    expect(stderr()).toBe(`continuo origin: cannot listen on 127.0.0.1: port ${port} is taken\n`);
    taken.close();
  });
});

describe('a running origin', () => {
  async function generate(port: unknown, changes: object, signal?: AbortSignal): Promise<Response> {
    const body = JSON.stringify({ ...request({ model: 'continuo-mini' }), ...changes });
    const key = await importSigningKey(SECRET);
    const claims = { timestamp: Date.now(), nonce: crypto.randomUUID() };
    const signature = await sign(key, { method: 'POST', path: '/generate', body }, claims);
    return fetch(`http://127.0.0.1:${port}/generate`, {
      method: 'POST',
      headers: { [SIGNATURE_HEADER]: signature },
      body,
      ...(signal ? { signal } : {}),
    });
  }

  const eventsOf = async (response: Response) =>
    (await response.text())
      .trimEnd()
      .split('\n')
      .map((line) => generationEvent.parse(JSON.parse(line)));

  test('infills, and on SIGTERM finishes what runs, takes no more, and exits with 0', async () => {
    const origin = start();
    const { port } = await origin.line('listening');
    await origin.line(/KV cache/);
    const infill = await generate(port, {
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
    const response = await generate(port, { prompts, maxTokens: 300, ignoreEos: true });
    expect(response.status).toBe(200);
    origin.child.kill('SIGTERM');
    await origin.line('draining');
    expect((await generate(port, {})).status).toBe(503);
    const last = (await eventsOf(response)).at(-1);
    expect(last).toMatchObject({ type: 'done', usage: { completionTokens: 300 } });
    expect(await origin.exit).toBe(0);
    expect(origin.stderr()).toBe('');
    for (const secret of [SECRET, 'PROMPT']) expect(origin.stdout()).not.toContain(secret);
  });

  test('exits at once on a second signal', async () => {
    const origin = start({ CONTINUO_DRAIN_SECONDS: '600' });
    const { port } = await origin.line('listening');
    await origin.line(/KV cache/);
    const controller = new AbortController();
    const response = await generate(port, { maxTokens: -1, ignoreEos: true, choices: 8 }, controller.signal);
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
    const { port } = await origin.line('listening');
    await origin.line(/KV cache/);
    const response = await generate(port, { maxTokens: -1, ignoreEos: true, choices: 8 });
    origin.child.kill('SIGTERM');
    expect((await response.text()).trimEnd().split('\n').at(-1)).toContain('"type":"error"');
    expect(await origin.exit).toBe(0);
  });
});
