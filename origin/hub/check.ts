import { statSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { MARKERS } from '../infill/families.ts';
import { readModelConfig } from '../model/config/model-config.ts';
import type { Precision } from '../model/config/model-files.ts';
import { openModel } from '../model/open/open-model.ts';
import { Tokenizer } from '../tokenizer/tokenizer.ts';
import { compareRows, type RowComparison } from './batch-invariance.ts';
import { continueGreedily } from './greedy.ts';
import { HubError } from './hub-error.ts';
import { measureSpeed, type Speed } from './speed.ts';

export interface CheckRequest {
  readonly directory: string;
  /** Of several precisions in the directory; left out, the best that is there. */
  readonly variant?: Precision | undefined;
  readonly prompt: string;
  readonly threads: number;
  /** Memory the KV cache may take. */
  readonly kvLimitBytes: number;
  /** Milliseconds, monotonic. */
  readonly now: () => number;
}

export interface CheckReport {
  /** Dimensions and KV cache in one line. */
  readonly summary: string;
  /** What the origin would warn of at the start; null if all is well. */
  readonly warning: string | null;
  /** Of every file in the directory. */
  readonly bytes: number;
  readonly promptTokens: number;
  /** What follows the prompt when the most likely token is taken each time. */
  readonly text: string;
  readonly speed: Speed;
  readonly rows: RowComparison;
}

/** Rows of the batch that is compared and timed. */
const SLOTS = 4;
const COMPARED_STEPS = 4;
/** Generated tokens, and decode steps that are timed. */
const STEPS = 32;
const TIMED_PROMPT = 256;
/** A longer prompt or context would only make the check slower. */
const LONGEST_CONTEXT = 1024;

/**
 * Loads a model directory as the origin does, runs one prompt and measures.
 * @throws Error one line: the fault that would stop the origin
 */
export async function checkModel(request: CheckRequest): Promise<CheckReport> {
  const { directory, variant, threads, kvLimitBytes, now } = request;
  const tokenizer = Tokenizer.fromDirectory(directory, MARKERS);
  const contextLength = Math.min(LONGEST_CONTEXT, readModelConfig(directory).maxPositions);
  const { runner, images, summary, warning } = await openModel({
    directory,
    variant,
    slots: SLOTS,
    contextLength,
    threads,
    kvLimitBytes,
  });
  try {
    const prompt = tokenizer.encode(request.prompt, { addSpecialTokens: true, parseSpecial: true });
    if (prompt.length < 1 || prompt.length > contextLength - STEPS) {
      throw new HubError(
        `the prompt is ${prompt.length} tokens; 1 to ${contextLength - STEPS} can be checked`,
      );
    }
    const room = contextLength - STEPS;
    const generated = await continueGreedily(runner, prompt, STEPS, new Set(tokenizer.eosIds));
    return {
      summary,
      warning,
      bytes: await bytesBelow(directory),
      promptTokens: prompt.length,
      text: tokenizer.decode(generated, { skipSpecialTokens: true }),
      rows: await compareRows(runner, repeat(prompt, Math.max(prompt.length, SLOTS)), COMPARED_STEPS),
      speed: await measureSpeed(runner, repeat(prompt, Math.min(TIMED_PROMPT, room)), STEPS, now),
    };
  } finally {
    runner.dispose();
    images?.dispose();
  }
}

/** The tokens over and over, `length` in all. */
const repeat = (tokens: readonly number[], length: number): number[] =>
  Array.from({ length }, (_, index) => tokens[index % tokens.length]!);

async function bytesBelow(directory: string): Promise<number> {
  const found = await readdir(directory, { recursive: true });
  const sizes = found.map((name) => {
    const file = statSync(path.join(directory, name), { throwIfNoEntry: false });
    return file?.isFile() ? file.size : 0;
  });
  return sizes.reduce((sum, size) => sum + size, 0);
}
