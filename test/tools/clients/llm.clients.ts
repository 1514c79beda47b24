import { rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, describe, expect, inject, test } from 'vitest';
import { newDirectory } from '../../support/new-directory.ts';
import { complete, texts } from './direct.ts';
import { runPython } from './python.ts';

/** The `llm` command line with a completion model. */

const python = inject('python');
const served = inject('served');
const directory = newDirectory();
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** The files in which users add servers and keys. JSON is valid YAML. */
writeFileSync(
  path.join(directory, 'extra-openai-models.yaml'),
  JSON.stringify([
    {
      model_id: 'continuo',
      model_name: 'default',
      api_base: `${served.url}/v1`,
      api_key_name: 'continuo',
      completion: true,
    },
  ]),
);
writeFileSync(path.join(directory, 'keys.json'), JSON.stringify({ continuo: served.apiKey }));

const llm = <T>(args: readonly string[], use: (stdout: string) => T): Promise<T> => {
  const env = { LLM_USER_PATH: directory };
  return runPython(python as string, ['-m', 'llm', ...args], { env }, use);
};

const PROMPT = ['prompt', '-m', 'continuo', '-o', 'temperature', '0', '-o', 'max_tokens', '12'];
const greedy = { prompt: 'Once upon a time', temperature: 0, max_tokens: 12 };

/** The record of a stream in the log of `llm`. */
interface Logged {
  readonly logprobs: readonly { readonly top_logprobs: readonly object[] }[];
  readonly usage: object;
}

describe.skipIf(python === null)('llm', () => {
  test('prints the same text streamed and plain', async () => {
    const [text] = await texts(greedy);
    const streamed = await llm([...PROMPT, greedy.prompt], (stdout) => stdout);
    const plain = await llm([...PROMPT, '--no-stream', greedy.prompt], (stdout) => stdout);
    expect(streamed).toBe(`${text}\n`);
    expect(plain).toBe(streamed);
  });

  test('keeps the logprobs and the usage of a stream in its log', async () => {
    const direct = await complete({ ...greedy, logprobs: 2 });
    await llm([...PROMPT, '-o', 'logprobs', '2', greedy.prompt], () => null);
    const entries = await llm(['logs', '--json', '-n', '1'], (stdout) => JSON.parse(stdout) as unknown);
    const [entry] = entries as { response: string; response_json: Logged }[];
    expect(entry?.response).toBe(direct.choices[0]?.text);
    const { logprobs, usage } = entry?.response_json ?? {};
    const { prompt_tokens, completion_tokens } = direct.usage;
    expect(usage).toMatchObject({ prompt_tokens, completion_tokens });
    expect(logprobs?.flatMap((step) => step.top_logprobs)).toEqual(direct.choices[0]?.logprobs?.top_logprobs);
  });
});
