import { type ModelConfig, ModelError } from './model-config.ts';
import { ElementType, type GraphTensor, type OnnxGraph } from './onnx-graph.ts';

/** How a decoder's graph is to be fed, derived from the graph and checked against config.json. Pure. */

export type KvType = 'float32' | 'float16';

export interface KvTensor {
  readonly past: string;
  readonly present: string;
}

export interface DecoderInterface {
  readonly layers: number;
  readonly kvHeads: number;
  readonly headSize: number;
  readonly kvType: KvType;
  readonly vocabularySize: number;
  /** Positions the model was made for; no slot can be longer. */
  readonly maxPositions: number;
  readonly logits: string;
  readonly hasPositionIds: boolean;
  /** Key and value of each layer: 2 · layers entries. */
  readonly kv: readonly KvTensor[];
}

const LOGITS = 'logits';
const INT64_INPUTS = ['input_ids', 'attention_mask', 'position_ids'];
const REQUIRED_INPUTS = ['input_ids', 'attention_mask'];
const PAST = /^past_key_values\.(\d+)\.(key|value)$/;

/** Throws ModelError naming what is missing, unknown or contradictory. */
export function describeDecoder(graph: OnnxGraph, config: ModelConfig): DecoderInterface {
  const inputs = new Map(graph.inputs.map((tensor) => [tensor.name, tensor]));
  const outputs = new Map(graph.outputs.map((tensor) => [tensor.name, tensor]));
  const unknown = [...inputs.keys()].filter((name) => !INT64_INPUTS.includes(name) && !PAST.test(name));
  if (unknown.length > 0) throw fault(`has inputs this engine does not know: ${unknown.join(', ')}`);
  const missing = REQUIRED_INPUTS.filter((name) => !inputs.has(name));
  if (missing.length > 0) throw fault(`lacks the input ${missing.join(', ')}`);
  for (const name of INT64_INPUTS) {
    const type = inputs.get(name)?.elementType ?? ElementType.int64;
    if (type !== ElementType.int64) throw fault(`has an input ${name} that is not int64`);
  }
  const attentions = graph.nodes.filter(({ operator }) => operator === 'GroupQueryAttention');
  if (attentions.length === 0) throw fault('does not use GroupQueryAttention');
  expectEqual('layers', attentions.length, config.layers, 'num_hidden_layers');

  const kv = kvTensors(attentions.length, inputs, outputs);
  const { kvHeads, headSize, kvType } = kvShape(kv, inputs);
  expectEqual('KV heads', kvHeads, config.kvHeads, 'num_key_value_heads');
  if (config.headSize !== null) expectEqual('head size', headSize, config.headSize, 'head_dim');
  expectEqual(
    'attention heads',
    attentions[0]?.integers.get('num_heads') ?? 0,
    config.attentionHeads,
    'num_attention_heads',
  );
  return {
    layers: attentions.length,
    kvHeads,
    headSize,
    kvType,
    vocabularySize: vocabularySize(outputs.get(LOGITS), config),
    maxPositions: Math.min(config.maxPositions, rotaryPositions(graph)),
    logits: LOGITS,
    hasPositionIds: inputs.has('position_ids'),
    kv,
  };
}

function kvTensors(
  layers: number,
  inputs: ReadonlyMap<string, GraphTensor>,
  outputs: ReadonlyMap<string, GraphTensor>,
): KvTensor[] {
  const kv: KvTensor[] = [];
  for (let layer = 0; layer < layers; layer++) {
    for (const part of ['key', 'value']) {
      const past = `past_key_values.${layer}.${part}`;
      const present = `present.${layer}.${part}`;
      if (!inputs.has(past)) throw fault(`lacks the input ${past}`);
      if (!outputs.has(present)) throw fault(`lacks the output ${present}`);
      kv.push({ past, present });
    }
  }
  const surplus = [...inputs.keys()].filter((name) => PAST.test(name)).length - kv.length;
  if (surplus > 0) throw fault(`has ${surplus} past_key_values inputs more than its ${layers} layers need`);
  return kv;
}

/** All KV tensors are [batch, kvHeads, positions, headSize] of one type. */
function kvShape(
  kv: readonly KvTensor[],
  inputs: ReadonlyMap<string, GraphTensor>,
): { kvHeads: number; headSize: number; kvType: KvType } {
  const shapes = kv.map(({ past }) => {
    const { elementType, dimensions } = inputs.get(past)!;
    const [, kvHeads, , headSize] = dimensions;
    if (dimensions.length !== 4 || typeof kvHeads !== 'number' || typeof headSize !== 'number') {
      throw fault(
        `has an input ${past} that is not [batch, KV heads, positions, head size] with fixed sizes`,
      );
    }
    if (elementType !== ElementType.float32 && elementType !== ElementType.float16) {
      throw fault(`has an input ${past} that is neither float32 nor float16`);
    }
    const kvType: KvType = elementType === ElementType.float16 ? 'float16' : 'float32';
    return { kvHeads, headSize, kvType };
  });
  const first = shapes[0]!;
  const other = shapes.findIndex(
    (shape) =>
      shape.kvHeads !== first.kvHeads || shape.headSize !== first.headSize || shape.kvType !== first.kvType,
  );
  if (other > 0)
    throw fault(`has KV inputs of different shapes or types: ${kv[0]!.past}, ${kv[other]!.past}`);
  return first;
}

function vocabularySize(logits: GraphTensor | undefined, config: ModelConfig): number {
  if (logits === undefined) throw fault(`lacks the output ${LOGITS}`);
  if (logits.elementType !== ElementType.float32 && logits.elementType !== ElementType.float16) {
    throw fault(`has an output ${LOGITS} that is neither float32 nor float16`);
  }
  const size = logits.dimensions.at(-1);
  if (typeof size !== 'number') return config.vocabularySize;
  expectEqual('vocabulary', size, config.vocabularySize, 'vocab_size');
  return size;
}

/** Rows of the shortest rotary table: positions past it would read outside. */
function rotaryPositions(graph: OnnxGraph): number {
  const COS_CACHE_INPUT = 7;
  const rows = graph.nodes
    .filter(({ operator }) => operator === 'GroupQueryAttention')
    .map(({ inputs }) => graph.initializers.get(inputs[COS_CACHE_INPUT] ?? '')?.dimensions[0] ?? Infinity);
  return Math.min(...rows);
}

function expectEqual(what: string, graph: number, config: number, key: string): void {
  if (graph !== config) throw fault(`has ${what} ${graph} but config.json says ${key} ${config}`);
}

function fault(text: string): ModelError {
  return new ModelError(`model.onnx ${text}`);
}
