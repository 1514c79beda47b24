import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { LOGITS_INDEX } from '../../../../origin/model/config/decoder-names.ts';
import { insertLogitsIndex } from '../../../../origin/model/foreign/logits-index.ts';
import { ElementType, GraphField, readGraph } from '../../../../origin/model/onnx/onnx-graph.ts';
import { graphFields, withGraph } from '../../../../origin/model/onnx/onnx-patch.ts';
import { runs } from '../../../support/random.ts';
import { OnnxWriter } from '../../../support/synthetic/onnx-writer.ts';
import { type SyntheticModel, writeSyntheticModel } from '../../../support/synthetic/synthetic-model.ts';
import { prefillPrompt, syntheticRunner, temporaryDirectory } from '../synthetic-runner.ts';

function modelBytes(options: Partial<SyntheticModel> = {}): Uint8Array {
  const directory = temporaryDirectory();
  writeSyntheticModel(directory, options);
  return readFileSync(join(directory, 'model.onnx'));
}

it('the graph reader finds inputs, outputs, operators and initializers', () => {
  const graph = readGraph(modelBytes({ layers: 1, kvHeads: 2, headSize: 16, externalData: true }));
  expect(graph.inputs).toEqual([
    { name: 'input_ids', elementType: ElementType.int64, dimensions: ['batch_size', 'sequence_length'] },
    {
      name: 'attention_mask',
      elementType: ElementType.int64,
      dimensions: ['batch_size', 'total_sequence_length'],
    },
    ...['key', 'value'].map((part) => ({
      name: `past_key_values.0.${part}`,
      elementType: ElementType.float32,
      dimensions: ['batch_size', 2, 'past_sequence_length', 16],
    })),
  ]);
  expect(graph.outputs.map(({ name }) => name)).toEqual(['logits', 'present.0.key', 'present.0.value']);
  const attention = graph.nodes.find(({ operator }) => operator === 'GroupQueryAttention');
  expect(attention?.integers.get('num_heads')).toBe(4);
  expect(attention?.integers.get('local_window_size')).toBe(-1);
  expect(graph.initializers.get('cos_cache')).toEqual({
    name: 'cos_cache',
    elementType: ElementType.float32,
    dimensions: [512, 8],
    external: { file: 'model.onnx.data', offset: expect.any(Number), length: 512 * 8 * 4 },
  });
});

it.each(['float32', 'float16'] as const)(
  'the patch adds logits_index and changes nothing else: %s',
  (precision) => {
    const original = modelBytes({ precision });
    const { fields, logits } = insertLogitsIndex(graphFields(original), 'logits');
    const [before, after] = [readGraph(original), readGraph(withGraph(original, fields))];
    expect(after.inputs).toEqual([
      ...before.inputs,
      { name: LOGITS_INDEX, elementType: ElementType.int64, dimensions: ['logit_rows'] },
    ]);
    expect(after.outputs.slice(1)).toEqual(before.outputs.slice(1));
    expect(after.outputs[0]).toEqual({
      name: logits,
      elementType: ElementType.float32,
      dimensions: ['logit_rows', 256],
    });
    expect(after.initializers).toEqual(before.initializers);
    const added = after.nodes.filter(
      ({ outputs }) => !before.nodes.some((node) => node.outputs[0] === outputs[0]),
    );
    expect(added.map(({ operator }) => operator)).toEqual(['Flatten', 'Gather']);
  },
);

it('drops the shapes that exporters note for inner tensors, which may be wrong', async () => {
  const noted = (model: Uint8Array) =>
    graphFields(model).filter(({ field }) => field === GraphField.valueInfo).length;
  const writer = new OnnxWriter();
  writer.input('hidden', 'float32', ['batch', 'sequence', 4]);
  writer.output('logits', 'float32', ['batch', 'sequence', 4]);
  writer.inner('negative', 'float32', ['batch', 'total', 4]);
  writer.node('Neg', ['hidden'], ['negative']);
  writer.node('MatMul', ['negative', 'projection'], ['logits']);
  const directory = temporaryDirectory();
  writer.write(directory, 'noted.onnx');
  const model = readFileSync(join(directory, 'noted.onnx'));
  expect(noted(model)).toBe(1);
  const { fields } = insertLogitsIndex(graphFields(model), 'logits');
  expect(noted(withGraph(model, fields))).toBe(0);
});

it('gives a graph whose noted shapes contradict the selection the right logits', async () => {
  const [softCap, token] = [2, Int32Array.of(7)];
  const { runner: plain } = await syntheticRunner();
  const { runner: capped } = await syntheticRunner({ softCap });
  const expected = (await prefillPrompt(plain, 0, token)).map(
    (logit) => softCap * Math.tanh(logit / softCap),
  );
  const logits = await prefillPrompt(capped, 0, token);
  expect(logits.length).toBe(256);
  for (const [id, logit] of logits.entries()) expect(logit).toBeCloseTo(expected[id]!, 5);
});

it('finds the projection behind a bias that another node gives', () => {
  const writer = new OnnxWriter();
  writer.output('logits', 'float32', ['batch', 'sequence', 4]);
  writer.node('Identity', ['shared'], ['bias']);
  writer.node('Neg', ['vectors'], ['hidden']);
  writer.node('MatMul', ['hidden', 'weight'], ['product']);
  writer.node('Add', ['bias', 'product'], ['sum']);
  writer.node('Cast', ['sum'], ['logits'], { attributes: { to: { int: 1 } } });
  const directory = temporaryDirectory();
  writer.write(directory, 'model.onnx');
  const model = readFileSync(join(directory, 'model.onnx'));
  const { fields } = insertLogitsIndex(graphFields(model), 'logits');
  const { nodes } = readGraph(withGraph(model, fields));
  expect(nodes.find(({ operator }) => operator === 'Flatten')?.inputs).toEqual(['hidden']);
});

it('refuses a graph whose logits do not come from a projection', () => {
  expect(() => insertLogitsIndex(graphFields(modelBytes()), 'present.9.key')).toThrow(
    'has no output projection',
  );
});

it('a truncated or damaged file gives an error or a graph, never a crash or hang', () => {
  const sizes = { layers: 1, hidden: 32, headSize: 8, intermediate: 32, vocabulary: 16 };
  const model = modelBytes({ ...sizes, quantization: 'q8' });
  const damaged = fc
    .tuple(fc.nat(model.length), fc.array(fc.tuple(fc.nat(2000), fc.nat(255)), { maxLength: 4 }))
    .map(([length, changes]) => {
      const copy = Uint8Array.from(model);
      for (const [at, value] of changes) copy[at] = value;
      return copy.subarray(0, length);
    });
  fc.assert(
    fc.property(damaged, (bytes) => {
      try {
        const { fields } = insertLogitsIndex(graphFields(bytes), 'logits');
        readGraph(withGraph(bytes, fields));
      } catch (error) {
        expect((error as Error).message).toMatch(/^(is|holds|has) /);
      }
    }),
    { numRuns: runs(300) },
  );
});
