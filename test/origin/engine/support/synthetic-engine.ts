import type { EngineThreadData } from '../../../../origin/engine/thread/engine-thread.ts';
import { textsOf } from '../../../../origin/model/config/model-directory.ts';
import { Tokenizer } from '../../../../origin/tokenizer/tokenizer.ts';
import { newDirectory } from '../../../support/new-directory.ts';
import { writeByteTokenizer } from '../../../support/synthetic/byte-tokenizer.ts';
import { type SyntheticModel, writeSyntheticModel } from '../../../support/synthetic/synthetic-model.ts';

export interface SyntheticEngine {
  readonly data: EngineThreadData;
  readonly vocabularySize: number;
}

/** Writes a tiny random model with a tokenizer to a directory; returns an engine thread's data. */
export function syntheticEngine(
  options: Partial<SyntheticModel> = {},
  { slots = 4, prefillChunk = 16 }: { readonly slots?: number; readonly prefillChunk?: number } = {},
): SyntheticEngine {
  const directory = newDirectory();
  const { vocabulary } = writeSyntheticModel(directory, { vocabulary: 320, ...options });
  writeByteTokenizer(directory, vocabulary);
  const tokenizer = Tokenizer.of(textsOf(directory));
  const data: EngineThreadData = {
    model: { directory, slots, prefillChunk, threads: 1, kvLimitBytes: 2 ** 30 },
    tokenBytes: tokenizer.tokenBytes,
    eosIds: tokenizer.eosIds,
    maxWaiting: 1000,
  };
  return {
    data,
    vocabularySize: vocabulary,
  };
}
