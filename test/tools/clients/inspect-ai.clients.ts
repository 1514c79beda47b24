import { expect, inject, test } from 'vitest';
import { complete, logprobsOf } from './direct.ts';
import { runScript } from './python.ts';

/**
 * inspect-ai takes the first entry of each position in `prompt_logprobs` for the prompt's own token, as vLLM
 * writes it.
 */

const python = inject('python');
const prompt =
  'Once upon a time, in a village by the river, there lived a fox who counted 17 geese and 3 old boats every morning.';

test.skipIf(python === null)('inspect-ai reads the logprobs of the prompt’s own tokens', async () => {
  const served = inject('served');
  const read = await runScript<Record<string, [string, number][]>>(
    python as string,
    'inspect_client.py',
    served,
    {
      TEST_PROMPT: prompt,
    },
  );
  const { choices } = await complete({ prompt, max_tokens: 0, echo: true, logprobs: 0 });
  const { tokens, token_logprobs } = logprobsOf(choices[0]);
  const expected = tokens.map((token, index) => [token, token_logprobs[index]]).slice(1);
  expect(expected.length).toBeGreaterThan(20);
  for (const count of ['1', '5', '20']) expect([count, read[count]]).toEqual([count, expected]);
});
