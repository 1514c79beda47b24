import { parentPort, workerData } from 'node:worker_threads';
import type { EncodeJob, EncodeResult } from './encoder.ts';
import { Tokenizer, type TokenizerParts } from './tokenizer.ts';

/** Entry of the encoder thread: encodes one text at a time. */

const tokenizer = new Tokenizer(workerData as TokenizerParts);

parentPort?.on('message', ({ text, options }: EncodeJob) => {
  try {
    const ids = Int32Array.from(tokenizer.encode(text, options));
    parentPort?.postMessage({ ids } satisfies EncodeResult, [ids.buffer]);
  } catch (error) {
    const failure = error instanceof Error ? error.message : 'unknown failure';
    parentPort?.postMessage({ failure } satisfies EncodeResult);
  }
});
