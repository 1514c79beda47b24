/** Finds what may run a model beside the processor. */

/** What ONNX Runtime's kernels use if the device has it. */
const FEATURES = ['shader-f16', 'subgroups'] as const;
/** With fewer, as emulators have, ONNX Runtime 1.30 computes other results: a self-test showed 12 % off. */
const LEAST_LANES = 8;

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
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: 'high-performance' });
  if (adapter === null) return { refusal: 'This browser finds no graphics card for WebGPU.' };
  if (adapter.info.isFallbackAdapter && !software)
    return { refusal: 'WebGPU is emulated by the processor here, which is slower.' };
  return { adapter };
}

/** Opens the adapter's device with all that it allows. */
export function openDevice(adapter: GPUAdapter): Promise<GPUDevice> {
  const requiredLimits: Record<string, number> = {};
  for (const name in adapter.limits) {
    const limit: unknown = Reflect.get(adapter.limits, name);
    if (typeof limit === 'number') requiredLimits[name] = limit;
  }
  const isNarrow = adapter.info.subgroupMinSize < LEAST_LANES;
  const requiredFeatures = FEATURES.filter(
    (feature) => adapter.features.has(feature) && !(feature === 'subgroups' && isNarrow),
  );
  return adapter.requestDevice({ requiredFeatures, requiredLimits });
}

/** Returns how the browser names the card; '' if it does not. */
export const nameOf = ({ info }: GPUAdapter): string =>
  info.description || [info.vendor, info.architecture].filter(Boolean).join(' ');
