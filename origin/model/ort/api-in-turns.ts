import type { DeviceTurns } from '../../process/engine-locks.ts';
import type { OrtApi } from './ort-capi.ts';

/**
 * Returns functions that run in the engine's turns. ONNX Runtime's WebGPU provider has one command queue per
 * process and crashes if two threads use it at the same time (microsoft/onnxruntime#32561). On CUDA, calls
 * of other threads disturb the capture of a graph.
 */
export function apiInTurns(api: OrtApi, turns: DeviceTurns): OrtApi {
  const inTurns = Object.entries(api).map(([name, member]) => {
    if (typeof member !== 'function' || name === 'addressOf') return [name, member];
    const called = member as (...args: unknown[]) => unknown;
    return [name, (...args: unknown[]) => turns.call(() => called(...args))];
  });
  return Object.fromEntries(inTurns);
}
