import { RuntimeFault } from '../model-runner.ts';
import type { DeviceTensor, RunBinding, RunSession } from '../ort/bound-tensors.ts';
import type { OrtWasm, WasmRuntime } from './wasm-runtime.ts';
import { WasmSession } from './wasm-session.ts';

interface GpuBuffer {
  destroy(): void;
}

/** What runners need of a browser's GPUDevice. */
export interface GpuDevice {
  readonly queue: { submit(commands: readonly object[]): void };
  readonly lost: Promise<{ readonly message: string }>;
  createBuffer(of: { readonly size: number; readonly usage: number }): GpuBuffer;
  createCommandEncoder(): GpuEncoder;
  destroy(): void;
}

interface GpuEncoder {
  copyBufferToBuffer(from: GpuBuffer, fromAt: number, to: GpuBuffer, toAt: number, bytes: number): void;
  clearBuffer(buffer: GpuBuffer): void;
  finish(): object;
}

/** What onnxruntime-web's JSPI build has in addition. */
export interface OrtWebGpu extends OrtWasm {
  webgpuInit(onDevice: (device: unknown) => void): void;
  webgpuRegisterDevice(device: GpuDevice): readonly [id: number, instance: number, device: number];
  webgpuOnCreateSession(session: number): void;
  webgpuOnReleaseSession(session: number): void;
  webgpuRegisterBuffer(buffer: GpuBuffer, session: number): number;
  webgpuUnregisterBuffer(buffer: GpuBuffer): void;
  _OrtAppendExecutionProvider(
    options: number,
    name: number,
    keys: number,
    values: number,
    count: number,
  ): number | Promise<number>;
}

/** Storage that can be copied from and to. */
const USAGE = 0x80 | 0x04 | 0x08;
/** The module's number for memory of the device. */
const ON_DEVICE = 4n;

/** Memory of the device, as a run binds it and as the device copies it. */
export interface GpuMemory extends Pick<DeviceTensor, 'address' | 'memory'> {
  readonly buffer: GpuBuffer;
}

/**
 * A model on WebGPU. Runs suspend WebAssembly, so only `runAsync` works. Owns the device: what lies there is
 * freed with the session.
 */
export class WebGpuSession implements RunSession {
  readonly copiesInputs = false;
  readonly device: GpuDevice;
  readonly #inner: WasmSession;
  readonly #module: OrtWebGpu;
  readonly #buffers: GpuBuffer[] = [];
  #lost: RuntimeFault | null = null;
  /** Ends the current run, which may else wait for the lost device. */
  #endRun: (fault: RuntimeFault) => void = () => {};

  private constructor(inner: WasmSession, module: OrtWebGpu, device: GpuDevice) {
    this.#inner = inner;
    this.#module = module;
    this.device = device;
    void device.lost.then(({ message }) => {
      this.#lost = new RuntimeFault(message || 'the device was lost', 'WEBGPU_LOST', 'device-lost');
      this.#endRun(this.#lost);
    });
  }

  /**
   * @param api of the JSPI build
   * @throws RuntimeFault with ONNX Runtime's message if it refuses the model. The device is destroyed then
   */
  static async open(
    api: WasmRuntime<OrtWebGpu>,
    model: Uint8Array,
    files: ReadonlyMap<string, Uint8Array>,
    device: GpuDevice,
  ): Promise<WebGpuSession> {
    try {
      const inner = await WasmSession.open(api, model, files, (options) =>
        appendProvider(api, options, device),
      );
      api.module.webgpuOnCreateSession(inner.handle);
      return new WebGpuSession(inner, api.module, device);
    } catch (thrown) {
      device.destroy();
      throw thrown;
    }
  }

  get api(): WasmRuntime {
    return this.#inner.api;
  }

  /** Returns zeros, which are freed with the session. */
  allocate(bytes: number): GpuMemory {
    const buffer = this.device.createBuffer({ size: bytes, usage: USAGE });
    this.#buffers.push(buffer);
    const address = BigInt(this.#module.webgpuRegisterBuffer(buffer, this.#inner.handle));
    return { buffer, address, memory: ON_DEVICE };
  }

  /** Has the device copy or clear buffers before the next run. */
  submit(encode: (encoder: GpuEncoder) => void): void {
    const encoder = this.device.createCommandEncoder();
    encode(encoder);
    this.device.queue.submit([encoder.finish()]);
  }

  bound(bind: (binding: RunBinding) => void): ReturnType<WasmSession['bound']> {
    return this.#inner.bound(bind);
  }

  run(): never {
    throw new Error('WebGPU runs asynchronously only');
  }

  /** @throws RuntimeFault also if the device is lost before the end of the run */
  runAsync(binding: Parameters<WasmSession['run']>[0], signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#endRun = reject;
    if (this.#lost !== null) reject(this.#lost);
    else this.#inner.runAsync(binding, signal).then(resolve, reject);
    return promise;
  }

  dispose(): void {
    // A run that waits for a lost device still uses the module, which nothing else does then.
    if (this.#lost === null) {
      for (const buffer of this.#buffers) this.#module.webgpuUnregisterBuffer(buffer);
      this.#inner.dispose();
      this.#module.webgpuOnReleaseSession(this.#inner.handle);
    }
    for (const buffer of this.#buffers.splice(0)) buffer.destroy();
    this.device.destroy();
  }
}

/** Has a session use the device. */
async function appendProvider(
  api: WasmRuntime<OrtWebGpu>,
  options: number,
  device: GpuDevice,
): Promise<void> {
  const { module } = api;
  module.webgpuInit(() => {});
  const [id, instance, handle] = module.webgpuRegisterDevice(device);
  const values = Object.entries({ deviceId: id, webgpuInstance: instance, webgpuDevice: handle });
  const texts = [api.text('WebGPU'), ...values.flat().map((part) => api.text(String(part)))];
  const [name, ...parts] = texts as [number, ...number[]];
  const lists = [0, 1].map((side) => api.list(parts.filter((_, index) => index % 2 === side)));
  const status = await module._OrtAppendExecutionProvider(options, name, lists[0]!, lists[1]!, values.length);
  for (const address of [...texts, ...lists]) module._free(address);
  if (status !== 0) api.fail();
}
