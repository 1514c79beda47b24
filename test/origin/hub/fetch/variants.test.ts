import { describe, expect, test } from 'vitest';
import { chooseVariant, precisionOf, variantsOf } from '../../../../origin/hub/fetch/variants.ts';

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
    // The pull adds the shards that the index names.
    expect(filesOf(files)).toEqual([...COMMON, 'model.safetensors.index.json'].toSorted());
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

  test.each([
    ['gpt-oss-20b-mxfp4.gguf', 'MXFP4'],
    ['m-MXFP4_MOE.gguf', 'MXFP4_MOE'],
    ['m_q8_0.gguf', 'Q8_0'],
    ['m-TQ1_0.gguf', 'TQ1_0'],
    ['bf16.gguf', 'BF16'],
    ['model.gguf', 'model'],
    ['m-Q4_K_M-v2.gguf', 'm-Q4_K_M-v2'],
  ])('are the GGUF file %s, named %s', (file, name) => {
    expect(variantsOf([file, 'imatrix.gguf', 'm-mmproj-f16.gguf'])).toEqual([
      { format: 'gguf', name, directory: '', files: [file] },
    ]);
  });

  test('are each GGUF model by itself, if two have one format', () => {
    const files = ['F16/a-F16.gguf', 'b-F16-00001-of-00002.gguf', 'b-F16-00002-of-00002.gguf', 'c-F16.gguf'];
    expect(variantsOf(files).map(({ name, files }) => [name, ...files])).toEqual([
      ['F16', ...files.slice(1, 3)],
      ['c-F16', 'c-F16.gguf'],
      ['F16/a-F16', 'F16/a-F16.gguf'],
    ]);
  });

  test('are named by a file as well', () => {
    const files = [...FILES, 'm-Q8_0.gguf'];
    expect(chooseVariant(files, 'owner/name', 'm-Q8_0.gguf').name).toBe('Q8_0');
    expect(chooseVariant(files, 'owner/name', 'config.json').name).toBe('safetensors');
  });
});

test('finds no variant without a decoder and weights', () => {
  expect(
    names(['config.json', 'onnx/vision_encoder.onnx', 'onnx/other.onnx', 'adapter.safetensors']),
  ).toEqual([]);
});

test.each<[string, string[], string]>([
  [
    'an adapter',
    ['adapter_config.json', 'adapter_model.safetensors', 'training_args.bin', 'tokenizer.json'],
    'is the adapter adapter_model.safetensors: serve its base model, which adapter_config.json names, with --adapter and the directory of this one',
  ],
  [
    'an adapter in a folder',
    ['README.md', 'checkpoint-9/adapter_config.json', 'checkpoint-9/adapter_model.safetensors'],
    'is the adapter checkpoint-9/adapter_model.safetensors: serve its base model',
  ],
  [
    'a pipeline for images',
    ['model_index.json', 'text_encoder/config.json', 'text_encoder/model.fp16.safetensors'],
    'is a pipeline of diffusers, not a language model',
  ],
  [
    'a pickled adapter',
    ['adapter_config.json', 'adapter_model.bin'],
    'has its adapter only as adapter_model.bin: pickled files can run code, so they are refused; where you trust it, save it as adapter_model.safetensors',
  ],
  [
    'weights without configuration',
    ['README.md', 'model.safetensors'],
    'has model.safetensors without config.json: add the config.json of the model',
  ],
  [
    'shards without index',
    ['config.json', 'model-00001-of-00002.safetensors', 'model-00002-of-00002.safetensors'],
    'has model-00001-of-00002.safetensors, model-00002-of-00002.safetensors without model.safetensors.index.json',
  ],
  [
    'Mistral’s format',
    ['params.json', 'consolidated.safetensors', 'tekken.json'],
    'has consolidated.safetensors, Mistral’s own format',
  ],
  [
    'a variant of transformers',
    ['config.json', 'model.fp16.safetensors', 'README.md'],
    'has model.fp16.safetensors: serve a directory in which it is named model.safetensors',
  ],
  [
    'shards of a variant of transformers',
    ['config.json', 'model.fp16-00001-of-00002.safetensors', 'model.safetensors.index.fp16.json'],
    'has model.fp16-00001-of-00002.safetensors: serve a directory in which ',
  ],
  [
    'safetensors of another name',
    ['config.json', 'pytorch_model-00001-of-00002.safetensors'],
    'has pytorch_model-00001-of-00002.safetensors, but neither model.safetensors nor model.safetensors.index.json',
  ],
  [
    'pickled shards',
    ['config.json', 'pytorch_model-00001-of-00002.bin', 'training_args.bin'],
    'has its weights only as pytorch_model-00001-of-00002.bin: pickled files can run code',
  ],
  [
    'models in folders',
    ['README.md', 'a/config.json', 'a/model.safetensors', 'b/c/model.onnx'],
    'has a model in each of the folders a, b/c: serve a directory with the files of that folder',
  ],
  [
    'a model in a folder',
    ['README.md', 'final/config.json', 'final/model.safetensors'],
    'has its model in the folder final: serve a directory with the files of that folder',
  ],
  [
    'graphs without a decoder',
    ['config.json', 'onnx/encoder_model.onnx', 'decoder_with_past_model.onnx'],
    'has onnx/encoder_model.onnx, decoder_with_past_model.onnx, but no decoder in one graph',
  ],
  ['an encoder of images', ['mmproj-model-f16.gguf'], 'has mmproj-model-f16.gguf, which is no decoder'],
  [
    'weights of other frameworks',
    ['config.json', 'tf_model.h5', 'flax_model.msgpack'],
    'has its weights only as tf_model.h5, flax_model.msgpack: convert them to safetensors',
  ],
  [
    'training state only',
    ['config.json', 'optimizer.pt', 'training_args.bin', 'README.md', '.gitattributes', 'a/b.txt'],
    'has no safetensors, no GGUF file and no ONNX decoder, only config.json, optimizer.pt, training_args.bin and 3 more',
  ],
  ['no file', [], 'has no safetensors, no GGUF file and no ONNX decoder; it is empty'],
])('says what is there in place of a model: %s', (_, files, message) => {
  expect(() => chooseVariant(files, 'owner/name')).toThrow(`owner/name ${message}`);
});
