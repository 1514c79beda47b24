import { type FaultKind, RuntimeFault } from '../model-runner.ts';

/** OrtErrorCode in onnxruntime_c_api.h, in order. */
const CODES = (
  'OK FAIL INVALID_ARGUMENT NO_SUCHFILE NO_MODEL ENGINE_ERROR RUNTIME_EXCEPTION ' +
  'INVALID_PROTOBUF MODEL_LOADED NOT_IMPLEMENTED INVALID_GRAPH EP_FAIL ' +
  'MODEL_LOAD_CANCELED MODEL_REQUIRES_COMPILATION NOT_FOUND'
).split(' ');

/**
 * Errors of cudaError (driver_types.h) after which "the process must be terminated and relaunched": the context of the
 * device is unusable for all threads.
 */
const STICKY_CUDA_ERRORS: ReadonlyMap<number, string> = new Map([
  [214, 'ECCUncorrectable'],
  [220, 'NvlinkUncorrectable'],
  [226, 'Contained'],
  [700, 'IllegalAddress'],
  [702, 'LaunchTimeout'],
  [709, 'ContextIsDestroyed'],
  [710, 'Assert'],
  [714, 'HardwareStackError'],
  [715, 'IllegalInstruction'],
  [716, 'MisalignedAddress'],
  [717, 'InvalidAddressSpace'],
  [718, 'InvalidPc'],
  [719, 'LaunchFailure'],
  [721, 'TensorMemoryLeak'],
  [999, 'Unknown'],
]);
const STICKY_NAME = new RegExp(`\\bcudaError(${[...STICKY_CUDA_ERRORS.values()].join('|')})\\b`);
/** Dawn's words for a WebGPU device that is gone. */
const LOST_WEBGPU_DEVICE = /\bdevice (is |was )?lost\b/i;

const OUT_OF_MEMORY =
  /\bout of memory\b|\bFailed to allocate memory\b|\bcudaErrorMemoryAllocation\b|ALLOC_FAILED\b/i;

/** Returns the error for a status of ONNX Runtime. */
export function ortFault(code: number, message: string): RuntimeFault {
  return new RuntimeFault(message, CODES[code] ?? `code ${code}`, kindOf(message));
}

function kindOf(message: string): FaultKind {
  const number = Number(/\bCUDA failure (\d+)/.exec(message)?.[1]);
  const isLost =
    STICKY_CUDA_ERRORS.has(number) || STICKY_NAME.test(message) || LOST_WEBGPU_DEVICE.test(message);
  if (isLost) return 'device-lost';
  return OUT_OF_MEMORY.test(message) ? 'out-of-memory' : 'other';
}
