import { expect, it } from 'vitest';
import type { DecoderInterface } from '../../../origin/model/decoder/decoder-interface.ts';
import { ConcatenatedCache } from '../../../origin/model/foreign/concatenated-cache.ts';
import { openOrtApi } from '../../../origin/model/ort/ort-capi.ts';
import {
  describeLayout,
  KvCache,
  kvLayout,
  maxAutomaticSlots,
  requireFit,
} from '../../../origin/model/runner/kv-cache.ts';

const decoder: DecoderInterface = {
  layers: 8,
  kvHeads: 4,
  headSize: 64,
  kvType: 'float32',
  vocabularySize: 8192,
  maxPositions: 4096,
  tokenInput: 'input_ids',
  embeddingSize: null,
  attentionMask: 'attention_mask',
  positionIds: null,
  useCacheBranch: null,
  logits: 'logits',
  cache: 'in-place',
  couplesRows: false,
  readsRunInputs: false,
  states: [],
  kv: Array.from({ length: 16 }, (_, i) => ({
    past: `past.${i}`,
    present: `present.${i}`,
    shared: [],
    heads: 4,
    headSize: 64,
  })),
};

it('the cache needs slots × context × layers × 2 × KV heads × head size × element bytes', () => {
  const layout = kvLayout(decoder, 32, 2048);
  expect(layout.totalBytes).toBe(32 * 2048 * 8 * 2 * 4 * 64 * 4);
  expect(describeLayout(layout)).toBe('32 slots × 2048 positions × 16384 bytes = 1024 MiB');
  expect(kvLayout({ ...decoder, kvType: 'float16' }, 32, 2048).totalBytes).toBe(layout.totalBytes / 2);
});

it('chooses at most 64 slots by itself, 128 on CUDA, and 8 if the graph computes row by row', () => {
  expect(maxAutomaticSlots(decoder, 'cpu')).toBe(64);
  expect(maxAutomaticSlots(decoder, 'cuda')).toBe(256);
  expect(maxAutomaticSlots({ ...decoder, cache: 'concatenated' }, 'cpu')).toBe(8);
  expect(maxAutomaticSlots({ ...decoder, couplesRows: true }, 'cuda')).toBe(8);
});

it('refuses a cache above its limit with the sizes and accepts one of exactly the limit', () => {
  const layout = kvLayout(decoder, 32, 2048);
  requireFit(layout, 2 ** 30);
  expect(() => requireFit(layout, 2 ** 30 - 1)).toThrow(
    'KV cache does not fit: 32 slots × 2048 positions × 16384 bytes = 1024 MiB, but 1023 MiB are available; set CONTINUO_SLOTS or CONTINUO_CONTEXT lower',
  );
});

it('a cache of replaced tensors has one spare slot to write into', () => {
  const layout = kvLayout({ ...decoder, cache: 'concatenated' }, 3, 2048);
  expect(layout.totalBytes).toBe(4 * 2048 * 16384);
  expect(describeLayout(layout)).toBe('(3 slots + 1 spare) × 2048 positions × 16384 bytes = 128 MiB');
});

const KEPT = 32;

it.runIf(process.platform === 'linux').each([
  { kind: 'updated in place', Cache: KvCache },
  { kind: 'of replaced tensors', Cache: ConcatenatedCache },
])('a cache $kind gives the memory of discarded positions back, and keeps all others', ({ Cache }) => {
  const layout = kvLayout(decoder, 3, 2048);
  const cache = new Cache(openOrtApi(), decoder, layout);
  const content = (slot: number) => {
    const bytes = new Uint8Array(layout.contextLength * layout.positionBytes);
    return bytes.map((_, at) => (slot + at * 31) % 251);
  };
  for (const slot of [0, 1, 2]) cache.write(slot, 0, [content(slot)]);
  const read = (slot: number, end: number) => {
    const bytes = new Uint8Array(end * layout.positionBytes);
    cache.read(slot, 0, end, bytes);
    return Buffer.from(bytes);
  };
  const whole = [0, 2].map((slot) => read(slot, layout.contextLength));
  const kept = read(1, KEPT);
  const resident = process.memoryUsage.rss();
  cache.discard(1, KEPT);
  const discarded = (layout.contextLength - KEPT) * layout.positionBytes;
  expect(resident - process.memoryUsage.rss()).toBeGreaterThan(discarded / 2);
  expect([0, 2].every((slot, at) => read(slot, layout.contextLength).equals(whole[at]!))).toBe(true);
  expect(read(1, KEPT).equals(kept)).toBe(true);
});
