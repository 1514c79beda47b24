import { type ChildProcess, spawn } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { newDirectory } from '../../support/new-directory.ts';
import { freePort } from '../../support/system.ts';
import { SECRET, startFakeOrigin } from '../../worker/support/fake-origin.ts';
import { type RunningWorker, startWorker } from '../../worker/support/worker.ts';
import { type Completion, complete } from './direct.ts';

/** LiteLLM's proxy behind the edge: an upstream of the flavor `litellm` before the running system. */

const python = inject('python');
const PROXY_KEY = 'sk-key-of-the-proxy';
const START_MS = 300_000;

const greedy = { prompt: 'Once upon a time', max_tokens: 12, temperature: 0 };

describe.skipIf(python === null)('LiteLLM behind the edge', () => {
  const home = newDirectory();
  let proxy: ChildProcess;
  let log = '';
  let worker: RunningWorker;
  let origin: Awaited<ReturnType<typeof startFakeOrigin>>;

  beforeAll(async () => {
    const { url, apiKey } = inject('served');
    const port = await freePort();
    const params = { model: 'text-completion-openai/default', api_base: `${url}/v1`, api_key: apiKey };
    const config = path.join(home, 'config.json');
    writeFileSync(config, JSON.stringify({ model_list: [{ model_name: 'theirs', litellm_params: params }] }));
    const program = path.join(path.dirname(python as string), 'litellm');
    proxy = spawn(program, ['--config', config, '--port', String(port), '--host', '127.0.0.1'], {
      env: {
        PATH: process.env.PATH,
        HOME: home,
        LITELLM_LOCAL_MODEL_COST_MAP: 'True',
        PYTHONUTF8: '1',
        LITELLM_MASTER_KEY: PROXY_KEY,
        LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY: 'true',
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [proxy.stdout, proxy.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        log += text;
      });
    }
    while (!log.includes('Application startup complete')) {
      if (proxy.exitCode !== null) throw new Error(`LiteLLM's proxy ended: ${log}`);
      await sleep(200);
    }
    const upstream = {
      kind: 'openai',
      name: 'litellm',
      url: `http://127.0.0.1:${port}/v1`,
      flavor: 'litellm',
      apiKey: 'PROXY_KEY',
      models: [{ id: 'default', upstreamId: 'theirs', contextLength: 2_048 }],
    };
    origin = await startFakeOrigin();
    worker = await startWorker(origin, {
      UPSTREAMS: JSON.stringify([upstream]),
      PROXY_KEY,
      ORIGIN_SECRET: SECRET,
    });
  }, START_MS);

  afterAll(async () => {
    await worker?.stop();
    await origin?.stop();
    proxy?.kill();
    rmSync(home, { recursive: true, force: true });
  });

  const ask = async (fields: object) => {
    const response = await worker.post({ model: 'default', ...fields });
    return [response.status, await response.json()] as const;
  };

  test('a plain answer, its logprobs and an echoed prompt are those of the server behind it', async () => {
    for (const fields of [
      { logprobs: 2 },
      { logprobs: 1, echo: true, max_tokens: 1 },
      { n: 2, logprobs: 0 },
    ]) {
      const direct = await complete({ ...greedy, ...fields });
      const [status, answer] = await ask({ ...greedy, ...fields });
      const shown = direct.choices.map(({ text, logprobs, index }) => ({ text, logprobs, index }));
      expect([status, answer]).toMatchObject([200, { choices: shown }]);
    }
  });

  test('a JSON Schema constrains the text', async () => {
    const response_format = { type: 'json_schema', json_schema: { name: 'n', schema: { enum: ['only'] } } };
    // JSON may begin with spaces.
    const fields = { ...greedy, max_tokens: 32, response_format };
    const [status, answer] = await ask(fields);
    const [text] = (answer as Completion).choices.map((choice) => choice.text);
    expect([status, JSON.parse(text ?? '')]).toEqual([200, 'only']);
    expect(text).toBe((await complete(fields)).choices[0]?.text);
  });

  test('prompt_logprobs are those of the server behind it', async () => {
    const fields = { ...greedy, max_tokens: 1, prompt_logprobs: 2 };
    const [status, answer] = await ask(fields);
    const [choice] = (await complete(fields)).choices as unknown as { prompt_logprobs: object[] }[];
    expect(choice?.prompt_logprobs.length).toBeGreaterThan(2);
    expect([status, answer]).toMatchObject([
      200,
      { choices: [{ prompt_logprobs: choice?.prompt_logprobs }] },
    ]);
  });

  test('a stream has the text of the plain answer', async () => {
    const text = await (await worker.post({ model: 'default', ...greedy, stream: true })).text();
    const pieces = text.split('\n').flatMap((line) => {
      const chunk = /^data: (\{.*)$/.exec(line)?.[1];
      return chunk === undefined ? [] : (JSON.parse(chunk) as { choices: { text: string }[] }).choices;
    });
    expect(pieces.map((piece) => piece.text).join('')).toBe((await complete(greedy)).choices[0]?.text);
  });

  test.each([
    ['logprobs', { logprobs: 1 }],
    ['n', { n: 2 }],
    ['prompt', { prompt: ['a', 'b'] }],
  ])('a stream that would lose %s is a 400', async (param, fields) => {
    const refused = [400, { error: { code: 'unsupported_parameter', param } }];
    expect(await ask({ ...greedy, ...fields, stream: true })).toMatchObject(refused);
  });
});
