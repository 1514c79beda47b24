import koffi, { type LibraryHandle } from 'koffi';
import { openLibrary } from './ort-library.ts';

/** Lists the Vulkan devices that ONNX Runtime's WebGPU provider can use under Linux. */

export interface Adapter {
  readonly name: string;
  /** False for a software renderer, such as Mesa's lavapipe. */
  readonly isGpu: boolean;
}

type Pointer = bigint;

/** From vulkan_core.h: sizes, offsets and values for 64-bit machines. */
const INSTANCE_CREATE_INFO = { bytes: 64, type: 1 };
const PROPERTIES = { bytes: 1024, type: 16, name: 20, nameBytes: 256 };
const TYPE_CPU = 4;

/** Returns an empty list without a Vulkan loader or driver. */
export function vulkanAdapters(): Adapter[] {
  let vulkan: LibraryHandle;
  try {
    vulkan = openLibrary('libvulkan.so.1');
  } catch {
    return [];
  }
  const createInstance = vulkan.func('vkCreateInstance', 'int', [
    'void *',
    'void *',
    koffi.out(koffi.pointer('void *')),
  ]);
  const info = Buffer.alloc(INSTANCE_CREATE_INFO.bytes);
  info.writeUInt32LE(INSTANCE_CREATE_INFO.type);
  const instance: [Pointer | null] = [null];
  if (createInstance(info, null, instance) !== 0 || instance[0] === null) return [];
  try {
    return devices(vulkan, instance[0]).map((device) => describe(vulkan, device));
  } finally {
    vulkan.func('vkDestroyInstance', 'void', ['void *', 'void *'])(instance[0], null);
  }
}

function devices(vulkan: LibraryHandle, instance: Pointer): Pointer[] {
  const enumerate = vulkan.func('vkEnumeratePhysicalDevices', 'int', ['void *', 'void *', 'void *']);
  const count = new Uint32Array(1);
  if (enumerate(instance, count, null) !== 0) return [];
  const handles = new BigUint64Array(count[0]!);
  if (enumerate(instance, count, handles) !== 0) return [];
  return [...handles];
}

function describe(vulkan: LibraryHandle, device: Pointer): Adapter {
  const properties = Buffer.alloc(PROPERTIES.bytes);
  vulkan.func('vkGetPhysicalDeviceProperties', 'void', ['void *', 'void *'])(device, properties);
  const { name, nameBytes, type } = PROPERTIES;
  return {
    name: properties.toString('utf8', name, name + nameBytes).replace(/\0.*$/s, ''),
    isGpu: properties.readUInt32LE(type) !== TYPE_CPU,
  };
}
