import { ApiError } from '@continuo/shared/errors.ts';
import type { TokenLogprob, WirePrompt } from '@continuo/shared/generation.ts';
import type { PlainFormat } from '../generation/format/completion-format.ts';
import { type Envelope, usageObject } from '../generation/format/completion-json.ts';
import { shownLogprob } from '../generation/format/float32.ts';
import { rowsOf } from '../generation/format/openai-logprobs.ts';
import { tokenText } from '../generation/format/token-text.ts';
import type { ParsedLikelihoods } from './parsed-score.ts';

/** Writes the scores of continuations from the `prompt` events of a generation. */
export function likelihoodFormat(request: ParsedLikelihoods, { id, created, model }: Envelope): PlainFormat {
  const scored: (readonly TokenLogprob[] | undefined)[] = [];
  return {
    add: (event) => {
      if (event.type === 'prompt') scored[event.prompt] = event.logprobs;
    },
    end: ({ usage }) =>
      JSON.stringify({
        id: id.replace(/^cmpl/, 'score'),
        created,
        model,
        object: 'list',
        data: request.parsed.generation.prompts.map((_, index) =>
          scoreOf(request, index, scored[index] ?? []),
        ),
        usage: usageObject(usage),
      }),
  };
}

function scoreOf(
  { parsed, tokenLogprobs }: ParsedLikelihoods,
  index: number,
  tokens: readonly TokenLogprob[],
): object {
  const logprobs = tokens.map(({ logprob }) => (logprob === null ? null : shownLogprob(logprob)));
  if (logprobs.length === 0 || logprobs.includes(null)) throw unscored(index);
  return {
    index,
    object: 'score',
    logprob: logprobs.reduce<number>((sum, logprob) => sum + (logprob ?? 0), 0),
    is_greedy: tokens.every(({ id, topLogprobs }) => topLogprobs?.[0]?.[0] === id),
    token_count: tokens.length,
    byte_count: byteCount(parsed.generation.prompts[index]!, tokens),
    ...(tokenLogprobs && {
      tokens: tokens.map(({ bytes }) => tokenText(bytes)),
      token_logprobs: logprobs,
    }),
    ...Object.fromEntries(parsed.response.rowMembers.map((member) => [member, rowsOf(tokens, member)])),
  };
}

/** Returns the bytes of a text as it was sent, or those that its token ids stand for. */
const byteCount = (continuation: WirePrompt, tokens: readonly TokenLogprob[]): number =>
  typeof continuation === 'string'
    ? new TextEncoder().encode(continuation).length
    : tokens.reduce((sum, { bytes, hidden }) => sum + (hidden ? 0 : bytes.length), 0);

const unscored = (index: number): ApiError =>
  new ApiError('upstream_error', `The model server returned no logprobs for 'continuations[${index}]'.`);
