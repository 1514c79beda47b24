import { getPriority, setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { unitsOf } from '@continuo/shared/binary-text.ts';
import type { DetokenizeResult, TokenizeResult } from '@continuo/shared/tokenization.ts';
import { bytesOf } from './token-bytes.ts';
import { Tokenizer } from './tokenizer.ts';
import type { TokenizerJob, TokenizerResult, TokenizerThreadData } from './tokenizer-thread.ts';

/** Entry of a tokenizer thread: does one job at a time. */

const { parts, background } = workerData as TokenizerThreadData;
const tokenizer = new Tokenizer(parts);

// On Linux, the priority is that of the calling thread. Elsewhere it would be that of the process. It is
// relative, because only root may raise one: with `nice -n 12`, 10 is higher. The lowest is 19.
if (background && process.platform === 'linux') setPriority(Math.min(19, getPriority() + 10));

const utf8 = new TextEncoder();
const json = (value: TokenizeResult | DetokenizeResult) => utf8.encode(JSON.stringify(value));

/** One code unit per byte. */
const bytesOfToken = (id: number): string => unitsOf(bytesOf(tokenizer.tokenBytes, id));

function resultOf(job: TokenizerJob): Int32Array<ArrayBuffer> | Uint8Array<ArrayBuffer> | number {
  if (job.kind === 'detokenize') {
    return json({ text: tokenizer.decode(job.tokens, { skipSpecialTokens: false }) });
  }
  const tokens = tokenizer.encode(job.text, job.options);
  if (job.kind === 'encode') return Int32Array.from(tokens);
  if (tokens.length > job.maxTokens) return tokens.length;
  const tokenStrings = job.withStrings ? { tokenStrings: tokens.map((id) => tokenizer.spelling(id)) } : {};
  const tokenBytes = job.withBytes ? { tokenBytes: tokens.map(bytesOfToken) } : {};
  return json({ tokens, ...tokenStrings, ...tokenBytes });
}

parentPort?.on('message', (job: TokenizerJob) => {
  try {
    const value = resultOf(job);
    const transfer = typeof value === 'number' ? [] : [value.buffer];
    parentPort?.postMessage({ value } satisfies TokenizerResult, transfer);
  } catch (error) {
    const failure = error instanceof Error ? error.message : 'unknown failure';
    parentPort?.postMessage({ failure } satisfies TokenizerResult);
  }
});
