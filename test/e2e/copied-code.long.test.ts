import { execFile } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { type CodeForm, type CodeRequest, requestCode } from '../../worker/site/copy/request-code.ts';
import { type OpenApiDocument, operationsOf } from '../../worker/site/docs/documents.ts';
import { examplesOf } from '../../worker/site/docs/operation/exchange.ts';
import { sharedSystem } from '../support/shared-system.ts';

/**
 * The code that the page copies, in the forms whose programs are here; test/tools/clients/ runs that of
 * Python.
 */

const system = sharedSystem();
const ROOT = path.resolve(import.meta.dirname, '../..');

/** Returns what the code prints when it is pasted. It lies beside the packages that it imports. */
async function printed(form: CodeForm, request: CodeRequest): Promise<string> {
  const file = path.join(ROOT, `.example-${process.pid}-${performance.now()}.ts`);
  writeFileSync(file, requestCode(form, request));
  onTestFinished(() => rmSync(file));
  const program = form === 'curl' ? 'sh' : process.execPath;
  const env = { ...process.env, KEY: system.apiKey };
  return (await promisify(execFile)(program, [file], { env, cwd: ROOT })).stdout;
}

const PROMPT = 'Once upon a time there was a "king"\nwho didn\'t say \\n';
const BODY = { model: 'default', prompt: PROMPT, max_tokens: 64, temperature: 0, stop: ['\n\n\n'] };

test('code of a completion prints in every form what the API returns', async () => {
  const url = `${system.url}/v1/completions`;
  const answer = await system.request('/v1/completions', BODY);
  const { choices } = (await answer.json()) as { choices: { text: string }[] };
  const { text } = choices[0]!;
  expect(text.length).toBeGreaterThan(20);
  const request = { method: 'POST', url, key: null, headers: {}, body: BODY };
  const json = JSON.parse(await printed('curl', request)) as { choices: { text: string }[] };
  expect(json.choices[0]!.text).toBe(text);
  for (const form of ['openai-node', 'fetch'] as const)
    expect((await printed(form, request)).replace(/\n$/, ''), form).toBe(text);
});

test.each(['createCompletion', 'createScore', 'listModels', 'tokenize'])(
  'the sample of %s in the reference runs when it is pasted',
  async (id) => {
    const document = (await (await fetch(`${system.url}/openapi.json`)).json()) as OpenApiDocument;
    const {
      method,
      path: location,
      operation,
    } = operationsOf(document, 'api').find(({ operation: { operationId } }) => operationId === id)!;
    const content = operation.requestBody?.content['application/json'];
    const body = content ? examplesOf(content)[0]![1] : null;
    const request = { method, url: system.url + location, key: null, headers: {}, body };
    for (const form of ['curl', id === 'createCompletion' ? 'openai-node' : 'fetch'] as const) {
      const stdout = await printed(form, request);
      expect(stdout.length, form).toBeGreaterThan(20);
      expect(stdout, form).not.toContain('error');
    }
  },
);
