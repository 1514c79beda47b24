import { type FaultKind, RuntimeFault } from '../model-runner.ts';

/** OrtErrorCode in onnxruntime_c_api.h, in order. */
const CODES = (
  'OK FAIL INVALID_ARGUMENT NO_SUCHFILE NO_MODEL ENGINE_ERROR RUNTIME_EXCEPTION ' +
  'INVALID_PROTOBUF MODEL_LOADED NOT_IMPLEMENTED INVALID_GRAPH EP_FAIL ' +
  'MODEL_LOAD_CANCELED MODEL_REQUIRES_COMPILATION NOT_FOUND'
).split(' ');

/** Codes of calls that ONNX Runtime refuses before the device is used, whatever text they quote. */
const REFUSALS = new Set(
  (
    'INVALID_ARGUMENT NO_SUCHFILE NO_MODEL INVALID_PROTOBUF MODEL_LOADED NOT_IMPLEMENTED INVALID_GRAPH ' +
    'MODEL_LOAD_CANCELED MODEL_REQUIRES_COMPILATION NOT_FOUND'
  ).split(' '),
);

/**
 * Errors of cudaError (driver_types.h) that later calls of this process get as well. After most of them "the
 * process must be terminated and relaunched"; after the others, the card may be available to a later process.
 */
const STICKY_CUDA_ERRORS: ReadonlyMap<number, string> = new Map([
  [46, 'DevicesUnavailable'],
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
  [802, 'SystemNotReady'],
  [805, 'MpsConnectionFailed'],
  [806, 'MpsRpcFailure'],
  [807, 'MpsServerNotReady'],
  [808, 'MpsMaxClientsReached'],
  [809, 'MpsMaxConnectionsReached'],
  [999, 'Unknown'],
]);
const CUDA_OUT_OF_MEMORY = 2;
const CUBLAS_ALLOC_FAILED = 3;

/** An error that the CUDA provider reports with its number in the library. */
const NUMBERED = /\b(CUDA|CUBLAS) failure (\d+)\b/;
/** Errors without a number. */
const STICKY_NAME = new RegExp(`\\bcudaError(${[...STICKY_CUDA_ERRORS.values()].join('|')})\\b`);
/** Dawn's words for a WebGPU device that is gone. */
const LOST_WEBGPU_DEVICE = /\bdevice (is |was )?lost\b/i;

const OUT_OF_MEMORY =
  /\bout of memory\b|\bFailed to allocate memory\b|\bcudaErrorMemoryAllocation\b|ALLOC_FAILED\b/i;

/** Returns the error for a status of ONNX Runtime. */
export function ortFault(code: number, message: string): RuntimeFault {
  const name = CODES[code] ?? `code ${code}`;
  return new RuntimeFault(message, name, REFUSALS.has(name) ? 'other' : kindOf(message));
}

/** The kind of an error of CUDA's runtime or driver, whose numbers agree where they matter here. */
export function cudaFaultKind(error: number): FaultKind {
  if (STICKY_CUDA_ERRORS.has(error)) return 'device-lost';
  return error === CUDA_OUT_OF_MEMORY ? 'out-of-memory' : 'other';
}

/** Takes the error's number if the message has one; only other messages are judged by their words. */
function kindOf(message: string): FaultKind {
  const [, library, number] = NUMBERED.exec(message) ?? [];
  if (library === 'CUDA') return cudaFaultKind(Number(number));
  if (library === 'CUBLAS') return Number(number) === CUBLAS_ALLOC_FAILED ? 'out-of-memory' : 'other';
  if (STICKY_NAME.test(message) || LOST_WEBGPU_DEVICE.test(message)) return 'device-lost';
  return OUT_OF_MEMORY.test(message) ? 'out-of-memory' : 'other';
}
