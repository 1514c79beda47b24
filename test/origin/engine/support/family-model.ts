import { buildModel } from '../../../../origin/export/build.ts';
import type { WeightPrecision } from '../../../../origin/export/graph/linear.ts';
import { textsOf } from '../../../../origin/model/config/model-directory.ts';
import { Tokenizer } from '../../../../origin/tokenizer/tokenizer.ts';
import { writeByteTokenizer } from '../../../support/synthetic/byte-tokenizer.ts';
import { CASES } from '../../export/family-cases.ts';
import { hashedCheckpoint } from '../../export/hashed-checkpoint.ts';

const VOCABULARY = 320;

/** Builds a random model of a family with the vocabulary of the byte tokenizer. */
export async function writeFamilyModel(directory: string, name: string, precision: WeightPrecision) {
  const { config, tensors } = CASES.find((one) => one.name === name)!;
  const shapes = Object.entries(tensors).map(
    ([tensor, [rows, ...columns]]) =>
      [tensor, [rows === config.vocab_size ? VOCABULARY : rows!, ...columns]] as const,
  );
  const sizes = Object.keys(config).filter(
    (field) => /^vocab_size/.test(field) && config[field] === config.vocab_size,
  );
  const larger = { ...config, ...Object.fromEntries(sizes.map((field) => [field, VOCABULARY])) };
  const checkpoint = hashedCheckpoint(larger, Object.fromEntries(shapes));
  await buildModel(checkpoint, { precision, directory });
  writeByteTokenizer(directory, VOCABULARY);
  return Tokenizer.of(textsOf(directory));
}
