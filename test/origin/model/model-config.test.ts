import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readModelConfig } from '../../../origin/model/config/model-config.ts';
import { textsOf } from '../../../origin/model/config/model-directory.ts';
import { planModel } from '../../../origin/model/open/plan-model.ts';
import { writeJson, writeSyntheticModel } from '../../support/synthetic/synthetic-model.ts';
import { ARCHITECTURES } from './architectures.ts';
import { editConfig } from './fault.ts';
import { temporaryDirectory } from './synthetic-runner.ts';

it.each(ARCHITECTURES)('reads the sizes of $architecture', ({ architecture, config, sizes }) => {
  const directory = temporaryDirectory();
  writeJson(join(directory, 'config.json'), { model_type: architecture, vocab_size: 1000, ...config });
  expect(readModelConfig(textsOf(directory))).toMatchObject(sizes);
});

const HEADS = { num_attention_heads: undefined, num_key_value_heads: undefined };

it.each([
  {
    fault: 'layers',
    changes: { num_hidden_layers: undefined, num_layers: 3 },
    message: 'model.onnx has layers 2 but config.json says num_layers 3',
  },
  {
    fault: 'KV heads',
    changes: { ...HEADS, n_head: 4, multi_query: true },
    message: 'model.onnx has KV heads 2 but config.json says multi_query true, which is 1',
  },
  {
    fault: 'attention heads',
    changes: { ...HEADS, n_heads: 8, num_key_value_heads: 2 },
    message: 'model.onnx has attention heads 4 but config.json says n_heads 8',
  },
  {
    fault: 'missing positions',
    changes: { max_position_embeddings: undefined },
    message:
      'config.json: max_position_embeddings: missing, as are its other names n_positions, max_seq_len, seq_length',
  },
  {
    fault: 'missing heads',
    changes: HEADS,
    message: 'config.json: num_attention_heads: missing, as are its other names n_head, n_heads, num_heads',
  },
])("names the file's own fields: $fault", ({ changes, message }) => {
  const directory = temporaryDirectory();
  writeSyntheticModel(directory);
  editConfig(changes)(directory);
  expect(() => planModel({ directory, slots: 1, kvLimitBytes: null })).toThrow(
    expect.objectContaining({ message }),
  );
});

it('gives a model without a limit of positions 2,048, and more if the operator asks for it', () => {
  const directory = temporaryDirectory();
  writeSyntheticModel(directory, { attention: 'concatenated' });
  editConfig({ model_type: 'bloom', max_position_embeddings: undefined })(directory);
  const plan = (contextLength?: number) =>
    planModel({ directory, slots: 1, kvLimitBytes: null, contextLength }).layout.contextLength;
  expect(plan()).toBe(2048);
  expect(plan(5000)).toBe(5000);
});
