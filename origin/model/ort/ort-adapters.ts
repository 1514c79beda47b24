import koffi, { type LibraryHandle } from 'koffi';
import { openLibrary } from './ort-library.ts';

/** Lists the Vulkan devices that ONNX Runtime's WebGPU provider can use under Linux. */

export interface Adapter {
  readonly name: string;
  /** False for a software renderer, such as Mesa's lavapipe. */
  readonly isGpu: boolean;
  /** Fewest lanes of a subgroup; 0 = unknown. */
  readonly minSubgroupSize: number;
}

type Pointer = bigint;

/** From vulkan_core.h: sizes, offsets and values for 64-bit machines. */
const APPLICATION_INFO = { bytes: 48, apiVersion: 44 };
const VULKAN_1_3 = (1 << 22) | (3 << 12);
const INSTANCE_CREATE_INFO = { bytes: 64, type: 1, application: 24 };
const PROPERTIES = { bytes: 1024, type: 16, name: 20, nameBytes: 256 };
const TYPE_CPU = 4;
/** VkPhysicalDeviceProperties2 {type, next, properties}, and the struct {type, next, minSubgroupSize …}. */
const PROPERTIES_2 = { type: 1_000_059_001, bytes: 16 + PROPERTIES.bytes, next: 8, properties: 16 };
const SUBGROUP_SIZES = { type: 1_000_225_000, bytes: 32, min: 16 };

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
  const application = Buffer.alloc(APPLICATION_INFO.bytes);
  application.writeUInt32LE(VULKAN_1_3, APPLICATION_INFO.apiVersion);
  const info = Buffer.alloc(INSTANCE_CREATE_INFO.bytes);
  info.writeUInt32LE(INSTANCE_CREATE_INFO.type);
  info.writeBigUInt64LE(koffi.address(application), INSTANCE_CREATE_INFO.application);
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
  const sizes = Buffer.alloc(SUBGROUP_SIZES.bytes);
  sizes.writeUInt32LE(SUBGROUP_SIZES.type);
  const extended = Buffer.alloc(PROPERTIES_2.bytes);
  extended.writeUInt32LE(PROPERTIES_2.type);
  extended.writeBigUInt64LE(koffi.address(sizes), PROPERTIES_2.next);
  vulkan.func('vkGetPhysicalDeviceProperties2', 'void', ['void *', 'void *'])(device, extended);
  const properties = extended.subarray(PROPERTIES_2.properties);
  const { name, nameBytes, type } = PROPERTIES;
  return {
    name: properties.toString('utf8', name, name + nameBytes).replace(/\0.*$/s, ''),
    isGpu: properties.readUInt32LE(type) !== TYPE_CPU,
    minSubgroupSize: sizes.readUInt32LE(SUBGROUP_SIZES.min),
  };
}
