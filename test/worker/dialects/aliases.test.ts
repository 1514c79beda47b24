import { describe, expect, test } from 'vitest';
import { parse, refusal } from './parsing.ts';

describe('aliases', () => {
  test.each([
    ['max_tokens', 'max_completion_tokens', 5, 6],
    ['max_tokens', 'n_predict', 5, 6],
    ['repetition_penalty', 'repeat_penalty', 1.5, 1.25],
    ['mirostat_tau', 'mirostat_target', 2, 3],
    ['mirostat_eta', 'mirostat_lr', 0.5, 0.25],
    ['logprobs', 'n_probs', 2, 3],
    ['logprobs', 'top_logprobs', 2, 3],
    ['prompt_logprob_start', 'logprob_start_len', 2, -1],
    ['typical_p', 'typ_p', 0.5, 0.25],
    ['n', 'n_cmpl', 2, 3],
    ['include_stop_str_in_output', 'no_stop_trim', true, false],
    ['return_token_ids', 'return_tokens', true, false],
    ['cache_salt', 'prompt_cache_key', 'a', 'b'],
    ['cache_salt', 'prompt_cache_isolation_key', 'a', 'b'],
  ])('accepts %s or %s, and both only with the same value', (canonical, alias, value, other) => {
    const mirostat = { mirostat: 2 };
    expect(parse({ ...mirostat, [alias]: value })).toEqual(parse({ ...mirostat, [canonical]: value }));
    expect(refusal({ [canonical]: value, [alias]: value })).toBeNull();
    const error = refusal({ [canonical]: value, [alias]: other });
    expect(error).toMatchObject({ code: 'conflicting_parameters', param: canonical });
    expect(error?.message).toContain(`'${canonical}' and '${alias}'`);
  });

  test('treats truncate_sequence as truncate_prompt_tokens: -1', () => {
    expect(parse({ truncate_sequence: true }).generation.truncatePromptTokens).toBe(-1);
    expect(parse({ truncate_prompt_tokens: -1 }).generation.truncatePromptTokens).toBe(-1);
    expect(parse({ truncate_prompt_tokens: 9 }).generation.truncatePromptTokens).toBe(9);
  });
});
