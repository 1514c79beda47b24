import { encodeIntegers, encodeModel, encodeNode, encodeTensor } from './onnx-encode.ts';
import { ElementType, GraphField } from './onnx-graph.ts';

/** Names of `scoreGraph`. */
export const SCORED_LOGITS = 'logits';
export const NEXT = 'next';
export const NEXT_LOGPROB = 'next_logprob';
export const BEFORE_NEXT = 'before_next';
export const TOP_LOGITS = 'top_logits';
export const TOP_IDS = 'top_ids';
export const TOP_LOGPROBS = 'top_logprobs';

const COLUMNS = { axis: 1 };

/**
 * Encodes an ONNX model that scores the tokens `next` [n, 1] by rows of logits [n, vocabulary]. It returns
 * their log-softmax, and how many tokens come before them: more likely ones, and equal ones with a lower
 * id. It also returns the `top` most likely tokens, with their logits and log-softmax. Counts are a product
 * with ones, because CUDA's sums need cuDNN; they are exact below 2²⁴.
 */
export function scoreGraph(vocabularySize: number, top: number): Uint8Array {
  const { float32, int64 } = ElementType;
  const ids = Array.from({ length: vocabularySize }, (_, id) => id);
  const column = (name: string, elementType: number) => ({ name, elementType, dimensions: ['n', 1] });
  const listed = (name: string, elementType: number) => ({ name, elementType, dimensions: ['n', top] });
  return encodeModel('score', [
    encodeIntegers('ids', int64, [1, vocabularySize], ids),
    encodeIntegers('top', int64, [1], [top]),
    encodeIntegers('one', int64, [vocabularySize, 1], Array(vocabularySize).fill(1)),
    encodeNode('LogSoftmax', [SCORED_LOGITS], 'logprobs', COLUMNS),
    encodeNode('GatherElements', ['logprobs', NEXT], NEXT_LOGPROB, COLUMNS),
    encodeNode('TopK', [SCORED_LOGITS, 'top'], [TOP_LOGITS, TOP_IDS]),
    encodeNode('GatherElements', ['logprobs', TOP_IDS], TOP_LOGPROBS, COLUMNS),
    encodeNode('GatherElements', [SCORED_LOGITS, NEXT], 'next_logit', COLUMNS),
    encodeNode('Greater', [SCORED_LOGITS, 'next_logit'], 'is_greater'),
    encodeNode('Equal', [SCORED_LOGITS, 'next_logit'], 'is_equal'),
    encodeNode('Less', ['ids', NEXT], 'is_lower'),
    encodeNode('And', ['is_equal', 'is_lower'], 'is_equal_and_lower'),
    encodeNode('Or', ['is_greater', 'is_equal_and_lower'], 'is_before'),
    encodeNode('Cast', ['is_before'], 'counted', { to: float32 }),
    encodeNode('Cast', ['one'], 'ones', { to: float32 }),
    encodeNode('MatMul', ['counted', 'ones'], BEFORE_NEXT),
    encodeTensor(GraphField.input, {
      name: SCORED_LOGITS,
      elementType: float32,
      dimensions: ['n', vocabularySize],
    }),
    encodeTensor(GraphField.input, column(NEXT, int64)),
    encodeTensor(GraphField.output, column(NEXT_LOGPROB, float32)),
    encodeTensor(GraphField.output, column(BEFORE_NEXT, float32)),
    encodeTensor(GraphField.output, listed(TOP_LOGITS, float32)),
    encodeTensor(GraphField.output, listed(TOP_IDS, int64)),
    encodeTensor(GraphField.output, listed(TOP_LOGPROBS, float32)),
  ]);
}

/** Names of `rowGraph`. */
export const ROW_INDEX = 'index';
export const ROW = 'row';

/** Encodes an ONNX model that returns one row of logits [n, vocabulary]. */
export function rowGraph(vocabularySize: number): Uint8Array {
  const { float32, int64 } = ElementType;
  const rows = (name: string, count: number | string) => ({
    name,
    elementType: float32,
    dimensions: [count, vocabularySize],
  });
  return encodeModel('row', [
    encodeNode('Gather', [SCORED_LOGITS, ROW_INDEX], ROW),
    encodeTensor(GraphField.input, rows(SCORED_LOGITS, 'n')),
    encodeTensor(GraphField.input, { name: ROW_INDEX, elementType: int64, dimensions: [1] }),
    encodeTensor(GraphField.output, rows(ROW, 1)),
  ]);
}
