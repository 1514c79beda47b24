import { beforeEach, expect, test, vi } from 'vitest';
import { findGpu, openDevice } from '../../../../worker/site/local/thread/find-gpu.ts';

beforeEach(() => void vi.useFakeTimers());

const hung = () => new Promise<never>(() => {});

/** @param requestAdapter the browser's */
const findWith = (requestAdapter: () => Promise<unknown>) => {
  vi.stubGlobal('navigator', { gpu: { requestAdapter } });
  vi.stubGlobal('WebAssembly', { Suspending: Object });
  return findGpu(false);
};

test('a browser whose WebGPU does not answer uses WebAssembly after 5 s, and says why', async () => {
  const found = findWith(hung);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(await found).toEqual({ refusal: "This browser's WebGPU gave no answer in 5 s." });
});

test('an adapter that is found in time is used, and a device that does not answer is refused', async () => {
  const info = { isFallbackAdapter: false, subgroupMinSize: 32 };
  const adapter = { info, limits: {}, features: new Set(), requestDevice: hung } as unknown as GPUAdapter;
  expect(await findWith(async () => adapter)).toEqual({ adapter });
  expect(vi.getTimerCount()).toBe(0);
  const opened = expect(openDevice(adapter)).rejects.toThrow('the graphics card gave no answer in 5 s');
  await vi.advanceTimersByTimeAsync(5_000);
  await opened;
});
