import {
  DEFAULT_NAMES,
  type DecoderNames,
  isLayerName,
  LAST_POSITIONS,
  LOGITS_INDEX,
  LOGITS_TO_KEEP,
  layerName,
  layerOf,
  TOTAL_LENGTH,
  USE_CACHE_BRANCH,
} from '../config/decoder-names.ts';
import type { ModelConfig } from '../config/model-config.ts';
import type { SizeName } from '../config/size-names.ts';
import { ElementType, type GraphTensor, type OnnxGraph, withBranches } from '../onnx/onnx-graph.ts';
import { hasKv, isPast, type KvTensor, type KvType, kvShape, kvTensors } from './kv-tensors.ts';
import { positionLimit } from './position-limit.ts';
import { isState, type StateTensor, stateLayers, stateTensors } from './state-tensors.ts';

/** Derives a decoder's inputs and outputs from its graph and checks them against its configuration. Pure. */

const LOGITS_TYPES: readonly number[] = [ElementType.float32, ElementType.float16, ElementType.bfloat16];

export interface DecoderInterface {
  readonly layers: number;
  /** Of the first layer with attention; others may have their own. 0 without such layers. */
  readonly kvHeads: number;
  readonly headSize: number;
  readonly kvType: KvType;
  readonly vocabularySize: number;
  /** Positions that the model supports; no slot can be longer. */
  readonly maxPositions: number;
  /** int64 ids [batch, sequence]; with `embeddingSize`, float32 [batch, sequence, embeddingSize]. */
  readonly tokenInput: string;
  /** Width of the vectors that the graph reads instead of ids; null = it reads ids. */
  readonly embeddingSize: number | null;
  readonly attentionMask: string;
  /** Whether the graph has the inputs of a run already, so that no patch applies. */
  readonly readsRunInputs: boolean;
  /** Null if the graph counts positions itself. */
  readonly positionIds: string | null;
  /** Boolean input that selects the branch with a past; null if there is one branch. */
  readonly useCacheBranch: string | null;
  readonly logits: string;
  /** Key and value of each layer with attention. */
  readonly kv: readonly KvTensor[];
  /** What layers without attention keep of a slot. */
  readonly states: readonly StateTensor[];
  /**
   * in-place: GroupQueryAttention writes new positions into the buffer it reads the past from.
   * concatenated: the present is a new tensor of past and new positions.
   */
  readonly cache: 'in-place' | 'concatenated';
  /** True if activations are scaled by the largest row of a run, so rows influence each other. */
  readonly couplesRows: boolean;
}

/** Inputs of convolution, state-space and recurrent layers as exporters name them. */
const FOREIGN_STATE =
  /(^|[._])(past_(conv|ssm|recurrent)|past\.\d+\.(conv|ssm|recurrent)|(conv|ssm|recurrent)_states?)([._]|$)/;
/** Scales of an 8-bit or 4-bit KV cache, as onnxruntime-genai's builder names them. */
const FOREIGN_SCALE = /\.(key|value)_scale$/;

const RMS_NORMALIZATION = /^(Skip)?SimplifiedLayerNormalization$/;

const COUPLING_OPERATORS = new Set(['DynamicQuantizeLinear', 'DynamicQuantizeMatMul']);

/** Reports whether a graph reads lengths and `logits_index` as the runners bind them (origin/export). */
const readsRunInputs = (inputs: ReadonlyMap<string, GraphTensor>): boolean =>
  [LAST_POSITIONS, TOTAL_LENGTH, LOGITS_INDEX].every((name) => inputs.has(name));

/** @throws Error that completes "model.onnx …" and names what is missing, unknown or contradictory */
export function describeDecoder(
  graph: OnnxGraph,
  config: ModelConfig,
  names: DecoderNames = DEFAULT_NAMES,
): DecoderInterface {
  const inputs = new Map(graph.inputs.map((tensor) => [tensor.name, tensor]));
  const outputs = new Map(graph.outputs.map((tensor) => [tensor.name, tensor]));
  const tokenInput = tokenInputOf(inputs, names);
  requireKnownInputs(inputs, tokenInput, names);
  requireLayerNorm(graph, config);
  const attentions = graph.nodes.filter(({ operator }) => operator === 'GroupQueryAttention');
  const tensors = { inputs, outputs, attentions };
  const layersWithKv = attentions.filter((node) => hasKv(node, tensors)).length;
  const pastKeys = [...inputs.keys()].filter((name) => isLayerName(names.pastKey, name));
  const states = stateTensors(inputs, outputs);
  const withKv = layersWithKv || pastKeys.length;
  if (withKv + states.length === 0) throw new Error(`lacks the input ${layerName(names.pastKey, 0)}`);
  const attending = new Set(pastKeys.map((name) => layerOf(names.pastKey, name)));
  const withState = stateLayers(inputs);
  const layers = withKv + withState.filter((layer) => !attending.has(layer)).length;
  expectEqual('layers', layers, config.layers, 'num_hidden_layers', config);

  const kv = kvTensors(layers, tensors, names, config);
  const { kvHeads, headSize, kvType } = kvShape(kv, inputs, readsRunInputs(inputs));
  if (kv.length > 0) {
    expectEqual('KV heads', kvHeads, config.kvHeads, 'num_key_value_heads', config);
    if (config.headSize !== null) expectEqual('head size', headSize, config.headSize, 'head_dim', config);
  }
  const heads = attentions[0]?.integers.get('num_heads') ?? (kv.length > 0 ? config.attentionHeads : 0);
  expectEqual('attention heads', heads, config.attentionHeads, 'num_attention_heads', config);
  return {
    layers,
    kvHeads,
    headSize,
    kvType,
    vocabularySize: vocabularySize(outputs.get(names.logits), config, names),
    maxPositions: positionLimit(graph, config),
    tokenInput,
    embeddingSize: embeddingSize(tokenInput, inputs, names),
    attentionMask: names.attentionMask,
    readsRunInputs: readsRunInputs(inputs),
    positionIds: inputs.has(names.positionIds) ? names.positionIds : null,
    useCacheBranch: inputs.has(USE_CACHE_BRANCH) ? USE_CACHE_BRANCH : null,
    logits: names.logits,
    kv,
    states,
    cache: attentions.length > 0 || kv.length === 0 ? 'in-place' : 'concatenated',
    couplesRows: [...withBranches(graph)].some(({ nodes }) =>
      nodes.some(({ operator }) => COUPLING_OPERATORS.has(operator)),
    ),
  };
}

function tokenInputOf(inputs: ReadonlyMap<string, GraphTensor>, names: DecoderNames): string {
  return inputs.has(names.inputsEmbeds) && !inputs.has(names.inputIds) ? names.inputsEmbeds : names.inputIds;
}

function embeddingSize(
  tokenInput: string,
  inputs: ReadonlyMap<string, GraphTensor>,
  names: DecoderNames,
): number | null {
  if (tokenInput !== names.inputsEmbeds) return null;
  const { elementType, dimensions } = inputs.get(tokenInput)!;
  const size = dimensions.at(-1);
  if (dimensions.length !== 3 || typeof size !== 'number') {
    throw new Error(`has an input ${tokenInput} that is not [batch, sequence, width] with a fixed width`);
  }
  if (elementType !== ElementType.float32) throw new Error(`has an input ${tokenInput} that is not float32`);
  return size;
}

function requireKnownInputs(
  inputs: ReadonlyMap<string, GraphTensor>,
  tokenInput: string,
  names: DecoderNames,
): void {
  const integers = [names.inputIds, names.attentionMask, names.positionIds, LOGITS_TO_KEEP];
  const runInputs = readsRunInputs(inputs) ? [LAST_POSITIONS, TOTAL_LENGTH, LOGITS_INDEX] : [];
  const supported = [tokenInput, ...integers, USE_CACHE_BRANCH, ...runInputs];
  const isKnown = (name: string) =>
    supported.includes(name) || isPast(name, names) || (runInputs.length > 0 && isState(name));
  const unknown = [...inputs.keys()].filter((name) => !isKnown(name));
  const states = unknown.filter((name) => FOREIGN_STATE.test(name));
  if (states.length > 0) {
    throw new Error(
      `belongs to a hybrid model: ${states.slice(0, 3).join(', ')} hold the state of layers without attention, which cannot be cut at a position; choose a model with attention only`,
    );
  }
  const scale = unknown.find((name) => FOREIGN_SCALE.test(name));
  if (scale !== undefined) {
    throw new Error(`has a quantized KV cache (${scale}), which is not supported; export it without`);
  }
  if (unknown.length > 0) throw new Error(`has unsupported inputs: ${unknown.join(', ')}`);
  const needed = runInputs.length > 0 ? [tokenInput] : [tokenInput, names.attentionMask];
  const missing = needed.filter((name) => !inputs.has(name));
  if (missing.length > 0) throw new Error(`lacks the input ${missing.join(', ')}`);
  for (const name of integers) {
    const type = inputs.get(name)?.elementType ?? ElementType.int64;
    if (type !== ElementType.int64) throw new Error(`has an input ${name} that is not int64`);
  }
  const branch = inputs.get(USE_CACHE_BRANCH)?.elementType ?? ElementType.bool;
  if (branch !== ElementType.bool) throw new Error(`has an input ${USE_CACHE_BRANCH} that is not bool`);
}

/** onnxruntime-genai's builder 0.18 exports OLMo 1 with RMS normalization: another model's logits. */
function requireLayerNorm({ nodes }: OnnxGraph, { architecture }: ModelConfig): void {
  if (architecture !== 'olmo') return;
  const rms = nodes.find(({ operator }) => RMS_NORMALIZATION.test(operator));
  if (rms === undefined) return;
  throw new Error(
    `normalizes by ${rms.operator}, but OLMo by LayerNormalization: a fault of its exporter, which gives other tokens; take an export by Optimum`,
  );
}

function vocabularySize(logits: GraphTensor | undefined, config: ModelConfig, names: DecoderNames): number {
  if (logits === undefined) throw new Error(`lacks the output ${names.logits}`);
  if (!LOGITS_TYPES.includes(logits.elementType)) {
    throw new Error(`has an output ${names.logits} that is none of float32, float16, bfloat16`);
  }
  const size = logits.dimensions.at(-1);
  if (typeof size !== 'number') return config.vocabularySize;
  expectEqual('vocabulary', size, config.vocabularySize, 'vocab_size', config);
  return size;
}

function expectEqual(
  what: string,
  graph: number,
  config: number,
  key: SizeName,
  { source, fieldNames }: ModelConfig,
): void {
  if (graph === config) return;
  const field = fieldNames[key] ?? key;
  const says = field === 'multi_query' ? `multi_query true, which is ${config}` : `${field} ${config}`;
  throw new Error(`has ${what} ${graph} but ${source} says ${says}`);
}
