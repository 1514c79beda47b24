import { expect, it } from 'vitest';
import { faultKind, RuntimeFault } from '../../../../origin/model/model-runner.ts';
import { openOrtApi } from '../../../../origin/model/ort/ort-capi.ts';
import { ortFault } from '../../../../origin/model/ort/ort-fault.ts';

/** Messages as ONNX Runtime's CUDA provider writes them. */
const failure = (number: number, text: string) =>
  `Non-zero status code returned while running MatMul node. Name:'/lm_head/MatMul' Status Message: CUDA failure ${number}: ${text} ; GPU=0 ; hostname=h ; file=/onnxruntime/cuda_call.cc ; line=129 ; expr=cudaStreamSynchronize(stream)`;

it.each([
  failure(700, 'an illegal memory access was encountered'),
  failure(719, 'unspecified launch failure'),
  failure(46, 'CUDA-capable device(s) is/are busy or unavailable'),
  failure(802, 'system not yet initialized'),
  failure(809, 'MPS max connections reached'),
  failure(214, 'uncorrectable ECC error encountered'),
  failure(999, 'unknown error'),
  'CUDA error cudaErrorIllegalAddress:an illegal memory access was encountered',
  'the WebGPU device was lost: GPU reset',
])('an error that makes the device unusable for the process is recognised: %s', (message) => {
  expect(faultKind(new Error('outer', { cause: ortFault(11, message) }))).toBe('device-lost');
});

it.each([
  failure(2, 'out of memory'),
  'CUDA error cudaErrorMemoryAllocation:out of memory',
  'Failed to allocate memory for requested buffer of size 1073741824',
  'CUBLAS failure 3: CUBLAS_STATUS_ALLOC_FAILED',
])('a lack of memory is recognised: %s', (message) => {
  expect(faultKind(ortFault(6, message))).toBe('out-of-memory');
});

it.each([
  failure(1, 'invalid argument'),
  failure(100, 'no CUDA-capable device is detected'),
  failure(7000, 'no such error'),
  'CUBLAS failure 13: CUBLAS_STATUS_EXECUTION_FAILED',
  failure(1, 'invalid argument: device lost, out of memory'),
])('an error after which other runs can succeed is not: %s', (message) => {
  expect(faultKind(ortFault(11, message))).toBe('other');
});

it.each([1, 6, 11, 77])('the words of an error count with the code %s of a failed run', (code) => {
  expect(faultKind(ortFault(code, 'Failed to allocate memory'))).toBe('out-of-memory');
});

it.each([2, 3, 7, 9, 10])('the code %s of a refused call decides, whatever its message quotes', (code) => {
  const messages = [
    'the input "device lost" is missing',
    'CUDA failure 700: quoted',
    'no file "out of memory"',
  ];
  expect(messages.map((message) => faultKind(ortFault(code, message)))).toEqual(['other', 'other', 'other']);
});

it('an error of ONNX Runtime has its code and message', () => {
  const api = openOrtApi();
  let thrown: unknown;
  try {
    api.CreateCpuMemoryInfo(99, 0);
    api.CreateMemoryInfo('no such memory', 0, 0, 0);
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toBeInstanceOf(RuntimeFault);
  expect(thrown).toMatchObject({ code: 'INVALID_ARGUMENT', kind: 'other' });
});
