import { readFileSync, renameSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { editConfig, editModel, type Fault } from './fault.ts';

/** Faults of directories laid out as onnxruntime-genai, onnx-community and Optimum lay them out. */

const GENAI = 'genai_config.json';
const builder = { configuration: 'genai' } as const;
const plain = { attention: 'concatenated', positionIds: true } as const;
const merged = { attention: 'merged' } as const;
const mergedFile = { file: 'onnx/decoder_model_merged.onnx', dataFile: 'decoder_model_merged.onnx_data' };

/** Changes fields of model. */
function editGenai({ decoder, ...changes }: Record<string, unknown>) {
  return (directory: string) => {
    const path = join(directory, GENAI);
    const config = JSON.parse(readFileSync(path, 'utf8'));
    Object.assign(config.model, changes);
    Object.assign(config.model.decoder, decoder);
    writeFileSync(path, JSON.stringify(config));
  };
}

const editDecoder = (decoder: Record<string, unknown>) => editGenai({ decoder });

const fillWeights = (file: string) => (directory: string) => {
  const path = join(directory, file);
  writeFileSync(path, new Uint8Array(readFileSync(path).length).fill(0xff));
};

export const LAYOUT_FAULTS: readonly Fault[] = [
  {
    fault: 'a graph that genai_config.json names and is not there',
    place: builder,
    damage: editDecoder({ filename: 'other.onnx' }),
    message: /^genai_config\.json names the graph other\.onnx, which is missing in .*$/,
  },
  {
    fault: 'a graph outside the directory',
    place: builder,
    damage: editDecoder({ filename: '../model.onnx' }),
    message: /^genai_config\.json names the graph \.\.\/model\.onnx, outside its directory$/,
  },
  {
    fault: 'broken genai_config.json',
    place: builder,
    damage: (directory) => writeFileSync(join(directory, GENAI), '{'),
    message: /^genai_config\.json is not valid JSON$/,
  },
  {
    fault: 'genai_config.json without a head size',
    place: builder,
    damage: editDecoder({ head_size: undefined }),
    message: /^genai_config\.json: model\.decoder\.head_size: /,
  },
  {
    fault: 'a template of names without the layer',
    place: builder,
    damage: editDecoder({ inputs: { past_key_names: 'past_key' } }),
    message:
      /^genai_config\.json: model\.decoder\.inputs\.past_key_names: must contain %d, the layer, exactly once$/,
  },
  {
    fault: 'names that are not those of the graph',
    place: builder,
    damage: editDecoder({ inputs: { past_key_names: 'past.%d.k', past_value_names: 'past.%d.v' } }),
    message: /^model\.onnx has unsupported inputs: past_key_values\.0\.key, .*past_key_values\.1\.value$/,
  },
  {
    fault: 'a decoder in several graphs',
    place: builder,
    damage: editDecoder({ pipeline: [] }),
    message:
      /^genai_config\.json: model\.decoder\.pipeline: decoders split into several graphs are not supported$/,
  },
  {
    fault: 'another number of layers in genai_config.json',
    place: builder,
    damage: editDecoder({ num_hidden_layers: 3 }),
    message: /^model\.onnx has layers 2 but genai_config\.json says num_hidden_layers 3$/,
  },
  {
    fault: 'two configurations that contradict each other',
    place: builder,
    damage: (directory) =>
      writeFileSync(
        join(directory, 'config.json'),
        JSON.stringify({
          vocab_size: 256,
          num_hidden_layers: 2,
          num_attention_heads: 8,
          max_position_embeddings: 512,
        }),
      ),
    message: /^genai_config\.json says attention heads 4 but config\.json says 8$/,
  },
  {
    fault: "a sliding window that is not the graph's",
    model: { slidingWindow: 12 },
    damage: editConfig({ sliding_window: 20 }),
    message: /^model\.onnx has local_window_size 12 but config\.json says sliding_window 20$/,
  },
  {
    fault: 'no head size in the graph nor in config.json',
    model: { kvDimension: 'symbol' },
    damage: editConfig({ head_dim: undefined, hidden_size: undefined }),
    message:
      /^model\.onnx has an input past_key_values\.0\.key without a head size, and config\.json has neither head_dim nor hidden_size; add head_dim$/,
  },
  {
    fault: 'more context than a sliding window the graph does not apply',
    damage: editConfig({ sliding_window: 100 }),
    options: { contextLength: 101 },
    message: /^context of 101 positions: the model supports 100$/,
  },
  {
    fault: 'more context than the shorter of two rotary tables',
    model: { shortRope: 40 },
    options: { contextLength: 41 },
    message: /^context of 41 positions: the model supports 40$/,
  },
  {
    fault: 'a truncated variant',
    model: { quantization: 'q4' },
    place: { file: 'onnx/model_q4.onnx' },
    damage: (directory) => truncateSync(join(directory, 'onnx/model_q4.onnx'), 20_000),
    message: /^onnx\/model_q4\.onnx is truncated$/,
  },
  {
    fault: 'a decoder in two graphs',
    place: { file: 'onnx/decoder_model.onnx' },
    message: /nor has its folder onnx; found: onnx\/decoder_model\.onnx$/,
  },
  {
    fault: 'weights without a graph',
    damage: (directory) => renameSync(join(directory, 'model.onnx'), join(directory, 'model.safetensors')),
    message: /; build one from model\.safetensors: continuo model build \S+$/,
  },
  {
    fault: 'external weights of another length',
    model: { externalData: true },
    damage: editModel('65536', '65532'),
    message:
      /^model\.onnx says that .+ takes 65532 bytes of model\.onnx\.data, but its dimensions take 65536$/,
  },
  {
    fault: 'external weights outside the directory',
    model: { externalData: true },
    damage: editModel('model.onnx.data', '../../onnx.data'),
    message: /^model\.onnx keeps its weights in \.\.\/\.\.\/onnx\.data, outside its directory$/,
  },
  {
    fault: 'external weights behind a link out of the directory',
    model: { externalData: true },
    place: { file: 'onnx/model.onnx' },
    damage: (directory) => {
      renameSync(join(directory, 'onnx/model.onnx.data'), join(directory, 'blob'));
      symlinkSync('../blob', join(directory, 'onnx/model.onnx.data'));
    },
    message: /^onnx\/model\.onnx keeps its weights in model\.onnx\.data, a link out of its directory; /,
  },
  {
    fault: 'truncated external weights of a merged model',
    model: { ...merged, externalData: true },
    place: mergedFile,
    damage: (directory) => truncateSync(join(directory, 'onnx', mergedFile.dataFile), 100_000),
    message:
      /^onnx\/decoder_model_merged\.onnx needs \d+ bytes of decoder_model_merged\.onnx_data for .+, but the file has 100000$/,
  },
  ...[
    { model: plain, place: { file: 'model.onnx' }, kind: 'concatenated' },
    { model: merged, place: mergedFile, kind: 'merged' },
  ].map(({ model, place, kind }) => ({
    fault: `weights that are not numbers in a ${kind} model`,
    model: { ...model, externalData: true },
    place: { ...place, dataFile: 'weights' },
    damage: fillWeights(kind === 'merged' ? 'onnx/weights' : 'weights'),
    message: /\.onnx gives logits that are not finite numbers$/,
  })),
  {
    fault: 'a hybrid model',
    model: plain,
    damage: editModel('position_ids', 'past_conv.01'),
    message:
      /^model\.onnx belongs to a hybrid model: past_conv\.01 hold the state of layers without attention, which cannot be cut at a position; choose a model with attention only$/,
  },
  ...[
    { place: builder, damage: editGenai({ type: 'olmo' }) },
    { place: {}, damage: editConfig({ model_type: 'olmo' }) },
  ].map(({ place, damage }) => ({
    fault: 'OLMo as a builder exports it, without its normalization',
    place,
    damage,
    message: /^model\.onnx normalizes by SimplifiedLayerNormalization, but OLMo by LayerNormalization: /,
  })),
  {
    fault: 'an unknown input of a concatenated model',
    model: plain,
    damage: editModel('position_ids', 'cache_positn'),
    message: /^model\.onnx has unsupported inputs: cache_positn$/,
  },
  {
    fault: 'another number of layers in a concatenated model',
    model: plain,
    damage: editConfig({ num_hidden_layers: 3 }),
    message: /^model\.onnx has layers 2 but config\.json says num_hidden_layers 3$/,
  },
  {
    fault: 'a concatenated layer without its past',
    model: plain,
    damage: editModel('past_key_values.1.value', 'past_key_values.5.value'),
    message: /^model\.onnx lacks the input past_key_values\.1\.value$/,
  },
  {
    fault: 'a concatenated layer without its present',
    model: plain,
    damage: editModel('present.1.key', 'present.1.kex'),
    message: /^model\.onnx lacks the output present\.1\.key$/,
  },
];
