import { base64Of } from '@continuo/shared/binary-text.ts';
import { toFloat16 } from '@continuo/shared/float16.ts';
import type { LogprobRow, LogprobRowFormat } from '@continuo/shared/logprob.ts';
import { normalizerOf } from './logprobs.ts';
import { gatherNucleus } from './truncation/shortlist.ts';
import { keepNucleus } from './truncation/truncations.ts';
import type { SamplerWorkspace } from './workspace.ts';

/**
 * Returns the logprobs of the whole vocabulary, or of the tokens that nucleus sampling keeps. The values are
 * those of `tokenLogprob`, except that −∞ stays −∞.
 * @param logits one raw row, one float32 per token id; not modified
 * @throws InvalidLogitsError, NoCandidatesError as `Row.begin`
 */
export function logprobRow(
  logits: Float32Array,
  { encoding, topP }: LogprobRowFormat,
  workspace: SamplerWorkspace,
): LogprobRow {
  const { row, candidates } = workspace;
  row.begin(logits);
  const normalizer = normalizerOf(workspace);
  const encoded = (values: Float32Array): string =>
    base64(encoding === 'float16' ? toFloat16(values) : values);
  if (topP === undefined)
    return { logprobs: encoded(Float32Array.from(logits, (logit) => logit - normalizer)) };
  gatherNucleus({ topP, minP: 0 }, workspace);
  keepNucleus(candidates, topP, 1);
  const ids = candidates.ids.slice(0, candidates.count);
  return { logprobs: encoded(Float32Array.from(ids, (id) => logits[id]! - normalizer)), ids: base64(ids) };
}

const base64 = ({ buffer, byteOffset, byteLength }: Float32Array | Uint16Array | Int32Array): string =>
  base64Of(new Uint8Array(buffer, byteOffset, byteLength));
