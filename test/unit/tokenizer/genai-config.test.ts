import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { Tokenizer } from '../../../origin/tokenizer/tokenizer.ts';
import { writeByteTokenizer } from '../../synthetic/byte-tokenizer.ts';
import { writeSyntheticModel } from '../../synthetic/synthetic-model.ts';
import { builder } from '../model/layout-parts.ts';
import { temporaryDirectory } from '../model/synthetic-runner.ts';

it('the tokens that end a text are read from genai_config.json where there is no other file', () => {
  const directory = temporaryDirectory();
  const model = writeSyntheticModel(directory, { vocabulary: 320 }, builder);
  writeByteTokenizer(directory, model.vocabulary);
  rmSync(join(directory, 'tokenizer_config.json'));
  expect(Tokenizer.fromDirectory(directory).eosIds).toEqual([319]);
});
