import { openLibrary } from './ort-library.ts';

/**
 * Ends the process without the handlers that libraries run at its end: those of CUDA and ONNX Runtime can
 * wait for ever for a card that is lost.
 */
export function endProcess(code: number): never {
  try {
    openLibrary(null).func('void _exit(int status)')(code);
  } catch {
    // The platform has no such function, and no CUDA.
  }
  process.exit(code);
}
