import { MARKERS } from '../../../origin/infill/families.ts';
import { findInfill } from '../../../origin/infill/infill.ts';
import type { ServedModel } from '../../../origin/served-model.ts';
import { Encoder } from '../../../origin/tokenizer/encoder.ts';
import { Tokenizer } from '../../../origin/tokenizer/tokenizer.ts';
import { type GenerationRequest, PROTOCOL_VERSION } from '../../../shared/generation.ts';
import { NEUTRAL_SAMPLING } from '../../../shared/sampling.ts';

/** A complete, valid request; tests change what they are about. */
export const request = (changes: Partial<GenerationRequest> = {}): GenerationRequest => ({
  version: PROTOCOL_VERSION,
  requestId: 'request-1',
  tenantId: 'tenant-1',
  weight: 1,
  model: 'tiny',
  prompts: ['hello world'],
  suffix: null,
  choices: 1,
  maxTokens: 4,
  minTokens: 0,
  stop: [],
  stopTokenIds: [],
  includeStop: false,
  ignoreEos: false,
  sampling: { ...NEUTRAL_SAMPLING, seed: 5 },
  constraint: null,
  logprobs: null,
  promptLogprobs: null,
  echo: false,
  scores: false,
  tokenIds: false,
  skipSpecialTokens: true,
  addSpecialTokens: true,
  contextOverflow: 'truncate',
  truncatePromptTokens: null,
  cachePrompt: true,
  cacheSalt: '',
  stream: true,
  deadlineMs: 60_000,
  ...changes,
});

export function servedModel(directory: string, contextLength = 64): ServedModel {
  const tokenizer = Tokenizer.fromDirectory(directory, MARKERS);
  return {
    id: 'tiny',
    created: 1_700_000_000,
    contextLength,
    vocabularySize: tokenizer.tokenBytes.vocabularySize,
    tokenizer,
    encoder: new Encoder(tokenizer, { directory, markers: MARKERS }),
    infill: findInfill(tokenizer, 'auto'),
  };
}
