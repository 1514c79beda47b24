import { existsSync, globSync } from 'node:fs';
import { dirname } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { LAST_POSITIONS, LOGITS_INDEX, TOTAL_LENGTH } from '../../../../origin/model/config/decoder-names.ts';
import { readModelConfig } from '../../../../origin/model/config/model-config.ts';
import { textsOf } from '../../../../origin/model/config/model-directory.ts';
import { findDecoder } from '../../../../origin/model/config/model-files.ts';
import { describeDecoder } from '../../../../origin/model/decoder/decoder-interface.ts';
import { feedLengths } from '../../../../origin/model/foreign/attention-lengths.ts';
import { insertLogitsIndex, keepAllLogits } from '../../../../origin/model/foreign/logits-index.ts';
import { disableWindowedCache } from '../../../../origin/model/foreign/windowed-cache.ts';
import { readGraph } from '../../../../origin/model/onnx/onnx-graph.ts';
import { graphFields, withGraph } from '../../../../origin/model/onnx/onnx-patch.ts';
import { arrayTensor, type Elements } from '../../../../origin/model/ort/bound-tensors.ts';
import { loadSession, readGraphFile } from '../../../../origin/model/ort/graph-file.ts';
import { KvCache, kvLayout } from '../../../../origin/model/runner/kv-cache.ts';
import {
  type SyntheticLayout,
  type SyntheticModel,
  writeSyntheticModel,
} from '../../../support/synthetic/synthetic-model.ts';
import { builder, community } from '../layout-parts.ts';
import { temporaryDirectory } from '../synthetic-runner.ts';

/** The graph fed with lengths computes the bits of the exporter's graph, fed with a mask. */

const SLOTS = 3;
const MAX_CONTEXT = 64;

interface Row {
  /** Positions before the new tokens. */
  readonly start: number;
  readonly tokens: readonly number[];
}

const int64 = (values: readonly number[]) => BigInt64Array.from(values, BigInt) as BigInt64Array<ArrayBuffer>;
const int32 = (values: readonly number[]) => Int32Array.from(values) as Int32Array<ArrayBuffer>;
const tokensOf = (length: number, seed: number) =>
  Array.from({ length }, (_, at) => (at * 31 + seed * 7 + 3) % 200);

/** Runs a decoder with the exporter's mask, or with lengths; both see the same cache layout. */
function decoderOf(directory: string, fed: 'mask' | 'lengths') {
  const { file, names } = findDecoder(directory);
  const graphFile = readGraphFile(directory, file);
  const decoder = describeDecoder(graphFile.graph, readModelConfig(textsOf(directory)), names);
  const fields = keepAllLogits(disableWindowedCache(graphFields(graphFile.model)));
  const changed = fed === 'lengths' ? feedLengths(fields, decoder.attentionMask) : fields;
  const { fields: patched, logits } = insertLogitsIndex(changed, decoder.logits, 'after-projection');
  const model = withGraph(graphFile.model, patched);
  const session = loadSession(graphFile, model, { threads: 1 });
  onTestFinished(() => session.dispose());
  const { api } = session;
  const context = Math.min(decoder.maxPositions, MAX_CONTEXT);
  const cache = new KvCache(api, decoder, kvLayout(decoder, SLOTS, context));

  /** Returns the logits of all new tokens of rows of equal length. */
  const run = (firstSlot: number, rows: readonly Row[], total: number): Float32Array => {
    const kept: Elements[] = [];
    const tensor = (array: Elements, dimensions: readonly number[]) => {
      kept.push(array);
      return arrayTensor(api, array, dimensions);
    };
    const length = rows[0]!.tokens.length;
    const shape = [rows.length, length];
    const result = new Float32Array(new ArrayBuffer(4 * rows.length * length * decoder.vocabularySize));
    const binding = session.bound((made) => {
      const ids = rows.flatMap(({ tokens }) => tokens);
      const positions = rows.flatMap(({ start, tokens }) => tokens.map((_, at) => start + at));
      const ends = rows.map(({ start }) => start + length);
      made.input(decoder.tokenInput, tensor(int64(ids), shape));
      if (decoder.positionIds !== null) made.input(decoder.positionIds, tensor(int64(positions), shape));
      if (fed === 'mask') {
        const mask = ends.flatMap((end) => Array.from({ length: total }, (_, at) => (at < end ? 1 : 0)));
        made.input(decoder.attentionMask, tensor(int64(mask), [rows.length, total]));
      } else {
        made.input(LAST_POSITIONS, tensor(int32(ends.map((end) => end - 1)), [rows.length]));
        made.input(TOTAL_LENGTH, tensor(int32([total]), []));
      }
      made.input(LOGITS_INDEX, tensor(int64([...ids.keys()]), [ids.length]));
      made.output(logits, tensor(result, [ids.length, decoder.vocabularySize]));
      cache.bind(made, firstSlot, rows.length);
    });
    session.run(binding);
    binding.dispose();
    return result;
  };
  return { run, context, graph: readGraph(model), decoder };
}

function requireEqualBits(directory: string): ReturnType<typeof decoderOf> {
  const masked = decoderOf(directory, 'mask');
  const fed = decoderOf(directory, 'lengths');
  const { context } = fed;
  const both = (firstSlot: number, rows: readonly Row[], total: number) => {
    const expected = masked.run(firstSlot, rows, total);
    expect(expected.some((logit) => logit !== 0)).toBe(true);
    expect(Buffer.from(fed.run(firstSlot, rows, total).buffer)).toEqual(Buffer.from(expected.buffer));
  };
  both(0, [{ start: 0, tokens: tokensOf(33, 1) }], 33);
  both(1, [{ start: 0, tokens: tokensOf(1, 2) }], 1);
  both(2, [{ start: 0, tokens: tokensOf(20, 3) }], 20);
  both(2, [{ start: 20, tokens: tokensOf(5, 4) }], 25);
  for (const total of [34, context]) {
    const starts = [33, 1, 25];
    both(
      0,
      starts.map((start, row) => ({ start, tokens: tokensOf(1, row) })),
      total,
    );
    both(
      1,
      starts.slice(1).map((start, row) => ({ start, tokens: tokensOf(1, 9 - row) })),
      total,
    );
  }
  both(1, [{ start: 0, tokens: tokensOf(1, 2) }], context);
  return fed;
}

const half = { precision: 'float16' } as const;
const LAYOUTS: readonly {
  readonly layout: string;
  readonly model: Partial<SyntheticModel>;
  readonly place?: Partial<SyntheticLayout>;
}[] = [
  { layout: 'builder', model: { externalData: true }, place: builder },
  { layout: 'builder, float16', model: { ...half, logits: 'float16', positionIds: true }, place: builder },
  { layout: 'sliding window', model: { slidingWindow: 12 } },
  {
    layout: 'sliding_window_cache',
    model: { slidingWindow: 12, windowedCache: true, kvDimension: 'symbol' },
  },
  { layout: 'long RoPE', model: { shortRope: 40 }, place: builder },
  { layout: 'soft cap', model: { softCap: 2 } },
  { layout: 'num_logits_to_keep', model: { logitsToKeep: 'scalar' } },
  { layout: 'community, float16', model: half, place: community('model_fp16') },
  { layout: 'q4', model: { quantization: 'q4', positionIds: true } },
  { layout: 'q4, float16', model: { ...half, quantization: 'q4' } },
  { layout: 'q8', model: { quantization: 'q8' } },
  { layout: 'bnb4', model: { quantization: 'bnb4' } },
  { layout: 'int8', model: { quantization: 'int8-dynamic' } },
  { layout: 'one KV head per head', model: { kvHeads: 4 } },
];

const MASK_OPERATORS = ['ReduceSum', 'Shape', 'Sub'];

it.for(LAYOUTS)('lengths give the bits of the mask: $layout', ({ model, place }) => {
  const directory = temporaryDirectory();
  writeSyntheticModel(directory, model, place);
  const { graph } = requireEqualBits(directory);
  const { shortRope = 0 } = model;
  expect(graph.inputs.map(({ name }) => name)).not.toContain('attention_mask');
  // Long RoPE chooses its tables by the width of the mask, so that a mask is computed.
  const left = graph.nodes.filter(({ operator }) => MASK_OPERATORS.includes(operator));
  expect(left.map(({ operator }) => operator)).toEqual(shortRope === 0 ? [] : ['Shape']);
});

/** A directory in which `npm run test:exporters` has exported models. */
const EXPORTED = process.env.EXPORTED_MODELS ?? '';
const exported = globSync(`${EXPORTED}/*/builder-*/model.onnx`).map(dirname);

describe.runIf(EXPORTED !== '' && existsSync(EXPORTED))('models of onnxruntime-genai’s builder', () => {
  it.each(exported)('%s', (directory) => {
    const { graph } = requireEqualBits(directory);
    expect(graph.nodes.filter(({ operator }) => MASK_OPERATORS.includes(operator))).toEqual([]);
  });
});
