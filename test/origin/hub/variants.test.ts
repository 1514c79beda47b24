import { describe, expect, test } from 'vitest';
import { chooseVariant, precisionOf, variantsOf } from '../../../origin/hub/variants.ts';

/** File lists of published repository layouts. */

const names = (files: readonly string[]) => variantsOf(files).map(({ name }) => name);
const filesOf = (files: readonly string[], wanted?: string) =>
  chooseVariant(files, 'owner/name', wanted).files.toSorted();

const COMMON = ['config.json', 'tokenizer.json', 'tokenizer_config.json'];

describe('the layout of transformers.js', () => {
  const FILES = [
    ...COMMON,
    'README.md',
    'vocab.txt',
    'package.json',
    'onnx/model.onnx',
    'onnx/model.onnx_data',
    'onnx/model.onnx_data_1',
    'onnx/model_fp16.onnx',
    'onnx/model_q4.onnx',
    'onnx/model_q4f16.onnx',
    'onnx/model_q4f16.onnx_data',
    'onnx/model_quantized.onnx',
    'onnx/model_bnb4.onnx',
    'onnx/model_int8.onnx',
    'onnx/model_uint8.onnx',
  ];

  test('names each precision as transformers.js does', () => {
    expect(names(FILES).toSorted()).toEqual(['bnb4', 'fp16', 'fp32', 'int8', 'q4', 'q4f16', 'q8', 'uint8']);
  });

  test('takes all weights of a variant and none of a variant with a longer name', () => {
    expect(filesOf(FILES, 'fp32')).toEqual([
      'config.json',
      'onnx/model.onnx',
      'onnx/model.onnx_data',
      'onnx/model.onnx_data_1',
      'tokenizer.json',
      'tokenizer_config.json',
    ]);
    expect(filesOf(FILES, 'q4')).toEqual([
      'config.json',
      'onnx/model_q4.onnx',
      'tokenizer.json',
      'tokenizer_config.json',
    ]);
  });

  test('prefers q4f16, then the next precision of the preference list', () => {
    expect(filesOf(FILES)).toContain('onnx/model_q4f16.onnx');
    expect(filesOf(FILES.filter((file) => !file.includes('q4')))).toContain('onnx/model_fp16.onnx');
    expect(filesOf(['onnx/model_bnb4.onnx', 'onnx/model_quantized.onnx'])).toEqual([
      'onnx/model_quantized.onnx',
    ]);
  });
});

test('takes a merged decoder’s vision graphs in its own precision, else unquantized', () => {
  const files = [
    ...COMMON,
    'preprocessor_config.json',
    'onnx/decoder_model_merged_q4.onnx',
    'onnx/decoder_model_merged_q4.onnx_data',
    'onnx/embed_tokens_q4.onnx',
    'onnx/vision_encoder.onnx',
    'onnx/vision_encoder_fp16.onnx',
  ];
  expect(names(files)).toEqual(['q4']);
  expect(filesOf(files)).toEqual(
    [...files.filter((file) => file !== 'onnx/vision_encoder_fp16.onnx')].toSorted(),
  );
});

test('takes only the merged decoder of an export with two decoders, which the origin cannot load', () => {
  const files = ['config.json', 'decoder_model.onnx', 'decoder_with_past_model.onnx'];
  expect(names(files)).toEqual([]);
  expect(filesOf([...files, 'decoder_model_merged.onnx'])).toEqual([
    'config.json',
    'decoder_model_merged.onnx',
  ]);
});

test('names a genai model at the top of the repository default', () => {
  const files = [...COMMON, 'genai_config.json', 'model.onnx', 'model.onnx.data', 'LICENSE'];
  expect(names(files)).toEqual(['default']);
  expect(filesOf(files)).toEqual(files.filter((file) => file !== 'LICENSE').toSorted());
});

test('names genai models in directories by their directory, which is the model directory', () => {
  const inside = (directory: string) =>
    ['genai_config.json', 'config.json', 'tokenizer.json', 'phi.onnx', 'phi.onnx.data'].map(
      (name) => `${directory}/${name}`,
    );
  const files = ['config.json', ...inside('cpu/int4'), ...inside('cuda/fp16')];
  expect(names(files)).toEqual(['cpu/int4', 'cuda/fp16']);
  const chosen = chooseVariant(files, 'owner/name', 'cuda/fp16');
  expect(chosen.directory).toBe('cuda/fp16');
  expect(chosen.files).toEqual(inside('cuda/fp16'));
});

test('reports no precision for a genai model in a directory named fp16', () => {
  const builder = variantsOf(['fp16/genai_config.json', 'fp16/model.onnx']);
  expect([...builder, ...variantsOf(['onnx/model_fp16.onnx'])].map(precisionOf)).toEqual([null, 'fp16']);
});

test('prefers onnx/ if a precision is both there and at the top', () => {
  const files = ['config.json', 'model.onnx', 'onnx/model.onnx'];
  expect(filesOf(files)).toEqual(['config.json', 'onnx/model.onnx']);
});

describe('weights from which a graph is built', () => {
  const SHARDS = ['model-00001-of-00002.safetensors', 'model-00002-of-00002.safetensors'];
  const FILES = [...COMMON, 'model.safetensors.index.json', ...SHARDS, 'consolidated.safetensors', 'a.bin'];

  test('are the shards of safetensors with their index, before ONNX graphs', () => {
    const files = [...FILES, 'onnx/model_q4.onnx'];
    expect(names(files)).toEqual(['q4', 'safetensors']);
    expect(filesOf(files)).toEqual([...COMMON, 'model.safetensors.index.json', ...SHARDS].toSorted());
    expect(chooseVariant(files, 'owner/name', 'q4').format).toBe('onnx');
  });

  test('are the GGUF files of one format, all parts of it, and none for images', () => {
    const files = [
      ...['README.md', 'm-Q4_K_M.gguf', 'm.Q8_0.gguf', 'm-IQ4_NL.gguf', 'm-bf16.gguf', 'mmproj-m-f16.gguf'],
      ...['F32/m-F32-00001-of-00002.gguf', 'F32/m-F32-00002-of-00002.gguf'],
    ];
    expect(names(files)).toEqual(['Q4_K_M', 'Q8_0', 'IQ4_NL', 'BF16', 'F32']);
    expect(chooseVariant(files, 'owner/name').name).toBe('Q8_0');
    expect(chooseVariant(files, 'owner/name', 'q4_k_m').files).toEqual(['m-Q4_K_M.gguf']);
    expect(chooseVariant(files, 'owner/name', 'F32')).toMatchObject({ directory: 'F32', format: 'gguf' });
    expect(chooseVariant(files, 'owner/name', 'F32').files).toHaveLength(2);
  });
});

test('finds no variant without a decoder and weights', () => {
  expect(
    names(['config.json', 'onnx/vision_encoder.onnx', 'onnx/other.onnx', 'adapter.safetensors']),
  ).toEqual([]);
  expect(() => chooseVariant(['config.json'], 'owner/name')).toThrow(
    'owner/name has no safetensors, no GGUF file and no ONNX decoder',
  );
});
