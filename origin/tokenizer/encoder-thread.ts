import { parentPort, workerData } from 'node:worker_threads';
import type { EncodeJob, EncodeResult, EncoderThreadData } from './encoder.ts';
import { Tokenizer } from './tokenizer.ts';

/** Entry of the encoder thread: one text after the other. */

const { directory, markers } = workerData as EncoderThreadData;
const tokenizer = Tokenizer.fromDirectory(directory, markers);

parentPort?.on('message', ({ text, options }: EncodeJob) => {
  try {
    const ids = Int32Array.from(tokenizer.encode(text, options));
    parentPort?.postMessage({ ids } satisfies EncodeResult, [ids.buffer]);
  } catch (error) {
    const failure = error instanceof Error ? error.message : 'unknown failure';
    parentPort?.postMessage({ failure } satisfies EncodeResult);
  }
});
