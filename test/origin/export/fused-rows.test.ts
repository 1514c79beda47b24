import path from 'node:path';
import { expect, it } from 'vitest';
import { buildModel } from '../../../origin/export/build.ts';
import { newDirectory } from '../../support/new-directory.ts';
import { CASES } from './family-cases.ts';
import { hashedCheckpoint } from './hashed-checkpoint.ts';

/** The parts of a tensor that holds several matrices. */

const folder = newDirectory();

it.each([
  ['phi3', { num_key_value_heads: 1 }, /qkv_proj/],

  ['internlm2', { num_key_value_heads: 1 }, /wqkv/],
  ['falcon-new', { num_kv_heads: 1 }, /query_key_value/],
  ['falcon-alibi', { multi_query: undefined }, /query_key_value/],
  ['falcon-alibi', { multi_query: true }, /query_key_value/],
  ['gpt_bigcode-multi-head', { multi_query: undefined }, /c_attn/],
  ['gpt_bigcode-multi-head', { multi_query: true }, /c_attn/],
  ['granitemoe', { num_local_experts: 1, num_experts_per_tok: 1 }, /router|input_linear/],

  ['gpt2', { n_positions: 512 }, /wpe/],
  ['opt', { max_position_embeddings: 128 }, /embed_positions/],
  ['gpt_oss', { num_local_experts: 4 }, /router|gate_up_proj/],
])(
  'use each of its rows once, or all positions, else %s with %j is refused',
  async (name, fields, tensor) => {
    const { config, tensors } = CASES.find((one) => one.name === name)!;
    const checkpoint = hashedCheckpoint({ ...config, ...fields }, tensors);
    const built = buildModel(checkpoint, { precision: 'fp32', directory: path.join(folder, name) });
    await expect(built).rejects.toThrow(tensor);
  },
);
