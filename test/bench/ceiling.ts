import { readFileSync } from 'node:fs';
import path from 'node:path';
import { allocateInt64 } from '../../origin/model/batch-inputs.ts';
import { describeDecoder } from '../../origin/model/decoder-interface.ts';
import { KvCache, kvLayout } from '../../origin/model/kv-cache.ts';
import { readModelConfig } from '../../origin/model/model-config.ts';
import { ElementType, readGraph } from '../../origin/model/onnx-graph.ts';
import { openOrtApi } from '../../origin/model/ort-capi.ts';
import { OrtSession } from '../../origin/model/ort-session.ts';
import { median } from './statistics.ts';

export interface CeilingOptions {
  readonly batch: number;
  readonly threads: number;
  /** Tokens already in every row: the middle of what a measured stream goes through. */
  readonly context: number;
  readonly ms: number;
}

/**
 * The bare decode loop: the model as published, everything bound once, RunWithBinding called again and again on the
 * same inputs. No sampling, no scheduling, no HTTP; nothing built on ONNX Runtime can be faster. Tokens per second.
 */
export function measureCeiling(directory: string, options: CeilingOptions): number {
  const model = readFileSync(path.join(directory, 'model.onnx'));
  const decoder = describeDecoder(readGraph(model), readModelConfig(directory));
  const session = new OrtSession(openOrtApi(), model, { threads: options.threads, directory });
  const { api } = session;
  const { batch } = options;
  const contextLength = Math.min(decoder.maxPositions, 1024);
  const cache = new KvCache(api, decoder, kvLayout(decoder, batch, contextLength));
  const width = options.context + 1;
  const tokens = allocateInt64(batch).fill(5n);
  const positions = allocateInt64(batch).fill(BigInt(options.context));
  const mask = allocateInt64(batch * width).fill(1n);
  const logits = new Float32Array(new ArrayBuffer(4 * batch * decoder.vocabularySize));
  const int64 = (array: BigInt64Array<ArrayBuffer>, dimensions: readonly number[]) => ({
    address: api.addressOf(array.buffer),
    elementType: ElementType.int64,
    elementBytes: 8,
    dimensions,
  });

  const binding = session.createBinding();
  binding.input('input_ids', int64(tokens, [batch, 1]));
  binding.input('attention_mask', int64(mask, [batch, width]));
  if (decoder.positionIds !== null) binding.input('position_ids', int64(positions, [batch, 1]));
  binding.output(decoder.logits, {
    address: api.addressOf(logits.buffer),
    elementType: ElementType.float32,
    elementBytes: 4,
    dimensions: [batch, 1, decoder.vocabularySize],
  });
  cache.bind(binding, 0, batch);
  for (let warm = 0; warm < 20; warm += 1) session.run(binding);
  const times: number[] = [];
  const begun = performance.now();
  for (let last = begun; last - begun < options.ms; ) {
    session.run(binding);
    const now = performance.now();
    times.push(now - last);
    last = now;
  }
  binding.dispose();
  session.dispose();
  if (!logits.subarray(0, decoder.vocabularySize).some((value) => value !== 0)) {
    throw new Error('The bare loop computed nothing.');
  }
  return (batch / median(times)) * 1000;
}
