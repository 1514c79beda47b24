import {
  isLayerName,
  layerName,
  layerOf,
  PAST_CONVOLUTION,
  PAST_RECURRENCE,
  PRESENT_CONVOLUTION,
  PRESENT_RECURRENCE,
} from '../config/decoder-names.ts';
import { ElementType, type GraphTensor } from '../onnx/onnx-graph.ts';

/** What layers without attention keep of a slot, as the inputs and outputs of their graph. */

/** A state that a graph reads and writes as a whole, in float32. */
export interface StateTensor {
  readonly past: string;
  readonly present: string;
  /** Of one row. */
  readonly dimensions: readonly number[];
}

/** Returns the numbers of one row. */
export const sizeOfState = ({ dimensions }: StateTensor): number =>
  dimensions.reduce((product, size) => product * size, 1);

/** Returns the bytes of one slot's state. */
export const bytesOfState = (states: readonly StateTensor[]): number =>
  states.reduce((sum, state) => sum + Float32Array.BYTES_PER_ELEMENT * sizeOfState(state), 0);

/** Names and dimensions of the states in graphs of origin/export. */
const STATES = [
  { past: PAST_CONVOLUTION, present: PRESENT_CONVOLUTION, dimensions: ['channels', 'positions'] },
  { past: PAST_RECURRENCE, present: PRESENT_RECURRENCE, dimensions: ['heads', 'key size', 'value size'] },
] as const;

export const isState = (name: string): boolean => STATES.some(({ past }) => isLayerName(past, name));

/** Layers with a state, each once. */
export const stateLayers = (inputs: ReadonlyMap<string, GraphTensor>): number[] => [
  ...new Set(
    STATES.flatMap(({ past }) =>
      [...inputs.keys()].filter((name) => isLayerName(past, name)).map((name) => layerOf(past, name)),
    ),
  ),
];

/** @throws Error that completes "model.onnx …" */
export function stateTensors(
  inputs: ReadonlyMap<string, GraphTensor>,
  outputs: ReadonlyMap<string, GraphTensor>,
): StateTensor[] {
  return STATES.flatMap((names) => {
    const pasts = [...inputs.keys()].filter((name) => isLayerName(names.past, name));
    return pasts.map((past): StateTensor => {
      const present = layerName(names.present, layerOf(names.past, past));
      const { elementType, dimensions } = inputs.get(past)!;
      const [, ...row] = dimensions;
      const sizes = row.filter((size) => typeof size === 'number' && size > 0) as number[];
      const wanted = names.dimensions.length;
      if (elementType !== ElementType.float32 || sizes.length !== wanted || row.length !== wanted) {
        throw new Error(`has an input ${past} that is not float32 [batch, ${names.dimensions.join(', ')}]`);
      }
      if (!outputs.has(present)) throw new Error(`lacks the output ${present}`);
      return { past, present, dimensions: sizes };
    });
  });
}
