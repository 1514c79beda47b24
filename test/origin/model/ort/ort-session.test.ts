import { expect, it } from 'vitest';
import type { OrtBinding } from '../../../../origin/model/ort/ort-binding.ts';
import type { OrtApi } from '../../../../origin/model/ort/ort-capi.ts';
import type { OrtDevice } from '../../../../origin/model/ort/ort-device.ts';
import { OrtSession } from '../../../../origin/model/ort/ort-session.ts';

/** Opens a session over functions that only record the runs. */
function sessionOn(device: OrtDevice, onRun = () => {}) {
  const runs: string[] = [];
  const recording: Record<string, unknown> = {
    RunWithBinding: () => {
      runs.push('calling thread');
      onRun();
    },
    runWithBindingAsync: async () => void runs.push('pool thread'),
  };
  const api = new Proxy({}, { get: (_, name: string) => recording[name] ?? (() => 1n) }) as OrtApi;
  const session = new OrtSession(api, new Uint8Array(1), { threads: 1, directory: '', device });
  const prefill = (signal = new AbortController().signal) => session.runAsync({} as OrtBinding, signal);
  return { runs, prefill };
}

const CUDA: OrtDevice = { provider: 'cuda', deviceId: 0, memoryBytes: null };

it('prefill uses one thread on a device, which keeps handles and workspaces per thread, and a pool on the CPU', async () => {
  for (const [device, thread] of [
    [CUDA, 'calling thread'],
    [{ provider: 'webgpu' }, 'calling thread'],
    [{ provider: 'cpu' }, 'pool thread'],
  ] as const) {
    const { runs, prefill } = sessionOn(device);
    await prefill();
    expect(runs).toEqual([thread]);
  }
});

it('a prefill on a device completes, and handles an abort that arrives during it before the next one', async () => {
  const controller = new AbortController();
  const { runs, prefill } = sessionOn(CUDA, () => setImmediate(() => controller.abort()));
  await prefill(controller.signal);
  expect(controller.signal.aborted).toBe(true);
  await expect(prefill(controller.signal)).rejects.toThrow('before it started');
  expect(runs).toEqual(['calling thread']);
});
