import { PICKLED_WEIGHTS, SAFETENSORS_INDEX } from '@continuo/export/checkpoint/safetensors.ts';

/** What lies in place of a model that can be served, and what its user can do about it. */
interface Substitute {
  /** Of the files' paths. */
  readonly pattern: RegExp;
  readonly message: (names: string) => string;
}

const PICKLES = 'pickled files can run code, so they are refused; where you trust it';

/** The first row that applies is the answer. */
const SUBSTITUTES: readonly Substitute[] = [
  {
    pattern: /(?:^|\/)adapter(?:s|_model)\.safetensors$/,
    message: (names) =>
      `is the adapter ${names}: serve its base model, which adapter_config.json names, with --adapter and the directory of this one`,
  },
  {
    pattern: /(?:^|\/)adapter_model\.bin$/,
    message: (names) => `has its adapter only as ${names}: ${PICKLES}, save it as adapter_model.safetensors`,
  },
  { pattern: /^model_index\.json$/, message: () => 'is a pipeline of diffusers, not a language model' },
  {
    pattern: /^model\.safetensors(?:\.index\.json)?$/,
    message: (names) => `has ${names} without config.json: add the config.json of the model`,
  },
  {
    pattern: /^model-\d+-of-\d+\.safetensors$/,
    message: (names) =>
      `has ${names} without ${SAFETENSORS_INDEX}, which names the shards: add it; save_pretrained(…) of transformers writes it`,
  },
  {
    pattern: /^consolidated[\w.-]*\.safetensors$/,
    message: (names) =>
      `has ${names}, Mistral’s own format: take the model in the format of transformers, with ${SAFETENSORS_INDEX} or model.safetensors`,
  },
  {
    pattern: /^model\.\w+(?:-\d+-of-\d+)?\.safetensors$/,
    message: (names) =>
      `has ${names}: serve a directory in which it is named model.safetensors, or its index ${SAFETENSORS_INDEX}`,
  },
];

/** Rows for repositories that have no model in a folder either. */
const LAST_SUBSTITUTES: readonly Substitute[] = [
  {
    pattern: /\.safetensors$/,
    message: (names) =>
      `has ${names}, but neither model.safetensors nor ${SAFETENSORS_INDEX}: rename the weights, or add the index that names them`,
  },
  {
    pattern: PICKLED_WEIGHTS,
    message: (names) =>
      `has its weights only as ${names}: ${PICKLES}, convert them to safetensors as docs/models.md shows`,
  },
  {
    pattern: /\.onnx$/,
    message: (names) =>
      `has ${names}, but no decoder in one graph: model.onnx or decoder_model_merged.onnx, here or in the folder onnx`,
  },
  { pattern: /\.gguf$/, message: (names) => `has ${names}, which is no decoder: take one with the decoder` },
  {
    pattern: /\.(?:h5|msgpack|ot|npz|nemo|tflite|task|mlmodel|keras)$/,
    message: (names) => `has its weights only as ${names}: convert them to safetensors`,
  },
];

/**
 * Says what a repository or directory without any variant has instead.
 * @param files Paths of all files, with `/`
 * @param folders Its folders that have a variant
 */
export function missingWeights(files: readonly string[], folders: readonly string[]): string {
  return (
    substituteOf(SUBSTITUTES, files) ??
    folderMessage(folders) ??
    substituteOf(LAST_SUBSTITUTES, files) ??
    `has no safetensors, no GGUF file and no ONNX decoder${files.length === 0 ? '; it is empty' : `, only ${listed(files)}`}`
  );
}

function substituteOf(rows: readonly Substitute[], files: readonly string[]): string | undefined {
  for (const { pattern, message } of rows) {
    const matching = files.filter((file) => pattern.test(file));
    if (matching.length > 0) return message(listed(matching));
  }
  return undefined;
}

function folderMessage(folders: readonly string[]): string | undefined {
  if (folders.length === 0) return undefined;
  const place =
    folders.length === 1
      ? `its model in the folder ${folders[0]}`
      : `a model in each of the folders ${listed(folders)}`;
  return `has ${place}: serve a directory with the files of that folder`;
}

const MAX_LISTED = 3;

const listed = (names: readonly string[]): string =>
  names.slice(0, MAX_LISTED).join(', ') +
  (names.length > MAX_LISTED ? ` and ${names.length - MAX_LISTED} more` : '');
