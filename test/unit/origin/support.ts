import { MARKERS } from '../../../origin/infill/families.ts';
import { findInfill } from '../../../origin/infill/infill.ts';
import type { ServedModel } from '../../../origin/served-model.ts';
import { Encoder } from '../../../origin/tokenizer/encoder.ts';
import { Tokenizer } from '../../../origin/tokenizer/tokenizer.ts';

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
