import { expect, test } from 'vitest';
import { arrayTensor } from '../../../../origin/model/ort/bound-tensors.ts';
import { WasmRuntime } from '../../../../origin/model/web/wasm-runtime.ts';
import {
  type GpuDevice,
  type OrtWebGpu,
  WebGpuSession,
} from '../../../../origin/model/web/webgpu-session.ts';

/** A device that counts its buffers, and a module whose runs never end. */
function fakes() {
  const lost = Promise.withResolvers<{ message: string }>();
  const held = { buffers: 0, device: 1, registered: 0, sessions: 0 };
  const device: GpuDevice = {
    queue: { submit: () => {} },
    lost: lost.promise,
    createBuffer: () => {
      held.buffers++;
      return { destroy: () => void held.buffers-- };
    },
    createCommandEncoder: () => ({ copyBufferToBuffer: () => {}, clearBuffer: () => {}, finish: () => ({}) }),
    destroy: () => void (held.device = 0),
  };
  const given: Partial<OrtWebGpu> = {
    HEAPU8: new Uint8Array(2 ** 16),
    _malloc: () => 1024,
    _OrtCreateTensor: () => 1,
    _OrtCreateSession: () => ++held.sessions,
    _OrtReleaseSession: () => --held.sessions,
    _OrtRun: () => new Promise(() => {}),
    webgpuRegisterDevice: () => [1, 1, 1],
    webgpuRegisterBuffer: () => ++held.registered,
    webgpuUnregisterBuffer: () => void held.registered--,
  };
  const module = new Proxy(given, {
    get: (_, name) => Reflect.get(given, name) ?? (() => 0),
  }) as OrtWebGpu;
  return { device, module, held, lose: lost.resolve };
}

const never = new AbortController().signal;
const open = ({ module, device }: ReturnType<typeof fakes>) =>
  WebGpuSession.open(new WasmRuntime(module), new Uint8Array(8), new Map(), device);

test('a session frees its buffers, what the module holds of them, and the device', async () => {
  const all = fakes();
  const session = await open(all);
  session.allocate(64);
  session.allocate(64);
  expect(all.held).toEqual({ buffers: 2, device: 1, registered: 2, sessions: 1 });
  session.dispose();
  expect(all.held).toEqual({ buffers: 0, device: 0, registered: 0, sessions: 0 });
});

test('a lost device ends the run that waits for it, and the runs after it', async () => {
  const all = fakes();
  const session = await open(all);
  session.allocate(64);
  const binding = session.bound((bound) =>
    bound.input('input', arrayTensor(session.api, new Float32Array(new ArrayBuffer(4)), [1])),
  );
  const run = session.runAsync(binding, never);
  all.lose({ message: 'gone' });
  await expect(run).rejects.toMatchObject({ kind: 'device-lost', message: 'gone' });
  await expect(session.runAsync(binding, never)).rejects.toMatchObject({ kind: 'device-lost' });
  session.dispose();
  expect(all.held).toMatchObject({ buffers: 0, device: 0 });
});

test('a model that ONNX Runtime refuses leaves no device open', async () => {
  const all = fakes();
  const module = new Proxy(all.module, {
    get: (inner, name) => (name === '_OrtCreateSession' ? () => 0 : Reflect.get(inner, name)),
  });
  await expect(open({ ...all, module })).rejects.toMatchObject({ code: 'ORT_FAIL' });
  expect(all.held.device).toBe(0);
});
