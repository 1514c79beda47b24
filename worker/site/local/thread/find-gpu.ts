/** Finds what may run a model beside the processor. */

/** What ONNX Runtime's kernels use if the device has it. */
const FEATURES = ['shader-f16', 'subgroups'] as const;
/** With fewer, as emulators have, ONNX Runtime 1.30 computes other results: a self-test showed 12 % off. */
const LEAST_LANES = 8;

/** A driver that hangs gives no answer at all. */
const ANSWER_S = 5;

export type FoundGpu =
  | { readonly adapter: GPUAdapter }
  /** Why there is none, in a sentence. */
  | { readonly refusal: string };

/**
 * Finds an adapter of WebGPU, in a browser that can wait for it within WebAssembly.
 * @param software whether an adapter of the processor will do, which is slower than WebAssembly
 */
export async function findGpu(software: boolean): Promise<FoundGpu> {
  if (!('gpu' in navigator)) return { refusal: 'This browser has no WebGPU on this page.' };
  if (!('Suspending' in WebAssembly))
    return { refusal: 'This browser has WebGPU, but not JSPI, which ONNX Runtime needs for it.' };
  const adapter = await inTime(navigator.gpu.requestAdapter({ powerPreference: 'high-performance' }));
  if (adapter === undefined) return { refusal: `This browser's WebGPU gave no answer in ${ANSWER_S} s.` };
  if (adapter === null) return { refusal: 'This browser finds no graphics card for WebGPU.' };
  if (adapter.info.isFallbackAdapter && !software)
    return { refusal: 'WebGPU is emulated by the processor here, which is slower.' };
  return { adapter };
}

/** Opens the adapter's device with all that it allows. @throws Error if it does not answer */
export async function openDevice(adapter: GPUAdapter): Promise<GPUDevice> {
  const requiredLimits: Record<string, number> = {};
  for (const name in adapter.limits) {
    const limit: unknown = Reflect.get(adapter.limits, name);
    if (typeof limit === 'number') requiredLimits[name] = limit;
  }
  const isNarrow = adapter.info.subgroupMinSize < LEAST_LANES;
  const requiredFeatures = FEATURES.filter(
    (feature) => adapter.features.has(feature) && !(feature === 'subgroups' && isNarrow),
  );
  const device = await inTime(adapter.requestDevice({ requiredFeatures, requiredLimits }));
  if (device === undefined) throw new Error(`the graphics card gave no answer in ${ANSWER_S} s`);
  return device;
}

/** Returns undefined if there is no answer in time. */
function inTime<T>(answer: Promise<T>): Promise<T | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<T | undefined>();
  const timer = setTimeout(resolve, 1_000 * ANSWER_S);
  answer.then(resolve, reject).finally(() => clearTimeout(timer));
  return promise;
}

/** Returns how the browser names the card; '' if it does not. */
export const nameOf = ({ info }: GPUAdapter): string =>
  info.description || [info.vendor, info.architecture].filter(Boolean).join(' ');
