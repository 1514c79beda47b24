import { createHash } from 'node:crypto';
import { cpus } from 'node:os';
import { filesOf } from '../config/model-files.ts';
import type { ModelRunner } from '../model-runner.ts';
import { ONNX_RUNTIME_VERSION } from '../ort/cuda-folder.ts';
import type { ModelOptions } from './plan-model.ts';

/**
 * Returns a hash of what the bits of KV and logits depend on. It has the KV and the logits that the model
 * computes for a fixed chunk, so weights and kernels that round differently have different hashes. The files'
 * names, sizes and times find weights that this chunk does not use.
 * @param runner not in use
 * @param deviceName of the device that it computes on
 */
export async function modelIdentity(
  { directory, variant, threads }: ModelOptions,
  runner: ModelRunner,
  deviceName: string,
): Promise<string> {
  const { kvBytes, shape } = runner;
  const { prefillChunk, contextLength, vocabularySize } = shape;
  const length = Math.min(prefillChunk, contextLength - 1);
  const tokens = Int32Array.from({ length }, (_, at) => (at * 7919) % vocabularySize);
  const chunk = { slot: 0, start: 0, tokens, logitsAt: Int32Array.of(length - 1) };
  const logits = await runner.prefill(chunk, new AbortController().signal);
  const kv = new Uint8Array(length * kvBytes.positionBytes);
  kvBytes.read(0, 0, length, kv);
  const facts = [
    ONNX_RUNTIME_VERSION,
    process.platform,
    process.arch,
    cpus()[0]?.model ?? '',
    deviceName,
    variant ?? '',
    threads,
    prefillChunk,
    filesOf(directory),
  ];
  return createHash('sha256').update(JSON.stringify(facts)).update(kv).update(logits).digest('hex');
}
