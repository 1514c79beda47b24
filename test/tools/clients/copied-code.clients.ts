import { describe, expect, inject, test } from 'vitest';
import { requestCode } from '../../../worker/site/copy/request-code.ts';
import { complete } from './direct.ts';
import { runPython } from './python.ts';

const python = inject('python');
const { url, apiKey } = inject('served');

describe.skipIf(python === null)("the page's code for openai-python", () => {
  const story = {
    model: 'default',
    prompt: 'He said "no" \\n\nand it\'s 🙂',
    max_tokens: 20,
    temperature: 0,
  };
  test.each([
    [
      'with unknown fields, null and flags',
      { ...story, echo: true, repetition_penalty: 1.1, ignore_eos: false },
    ],
    ['with lists and maps', { ...story, stop: ['\n\n\n', '"""'], logit_bias: { 5: -1 }, best_of: null }],
  ])('runs when pasted, and prints the completion: %s', async (_, body) => {
    const code = requestCode('openai-python', {
      method: 'POST',
      url: `${url}/v1/completions`,
      key: null,
      headers: { 'x-dialect': 'vllm' },
      body,
    });
    const printed = await runPython(python!, ['-c', code], { env: { KEY: apiKey } }, (stdout) => stdout);
    const [choice] = (await complete(body)).choices;
    expect(printed).toBe(`${choice!.text}\n`);
    expect(choice!.text.length).toBeGreaterThan(20);
  });
});
