import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { textsOf } from '../../../origin/model/config/model-directory.ts';
import { Tokenizer } from '../../../origin/tokenizer/tokenizer.ts';
import { writeByteTokenizer } from '../../support/synthetic/byte-tokenizer.ts';
import { writeSyntheticModel } from '../../support/synthetic/synthetic-model.ts';
import { builder } from '../model/layout-parts.ts';
import { temporaryDirectory } from '../model/synthetic-runner.ts';

/** A model with its tokenizer, as onnxruntime-genai's builder lays it out. */
function builtModel(): string {
  const directory = temporaryDirectory();
  const model = writeSyntheticModel(directory, { vocabulary: 320 }, builder);
  writeByteTokenizer(directory, model.vocabulary);
  return directory;
}

it('reads end tokens from genai_config.json if there is no other file', () => {
  const directory = builtModel();
  rmSync(join(directory, 'tokenizer_config.json'));
  expect(Tokenizer.of(textsOf(directory)).eosIds).toEqual([319]);
});

it('uses all end tokens of genai_config.json although config.json names one', () => {
  const directory = builtModel();
  const file = join(directory, 'genai_config.json');
  const genai = JSON.parse(readFileSync(file, 'utf8'));
  genai.model.eos_token_id = [319, 300, 301];
  writeFileSync(file, JSON.stringify(genai));
  writeFileSync(join(directory, 'config.json'), JSON.stringify({ vocab_size: 320, eos_token_id: 319 }));
  expect(Tokenizer.of(textsOf(directory)).eosIds).toEqual([319, 300, 301]);
});
