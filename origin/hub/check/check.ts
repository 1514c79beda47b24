import { MARKERS } from '../../infill/families.ts';
import { textsOf } from '../../model/config/model-directory.ts';
import type { ModelRunner } from '../../model/model-runner.ts';
import { openModel } from '../../model/open/open-model.ts';
import { Tokenizer } from '../../tokenizer/tokenizer.ts';
import { bytesBelow } from '../fetch/cache.ts';
import { HubError } from '../fetch/hub-error.ts';
import { type BatchInvariance, measureBatchInvariance } from './batch-invariance.ts';
import { measureText, type TextLikelihood } from './bits-per-byte.ts';
import type { CheckTarget } from './check-targets.ts';
import { continueGreedily, decode, prefill } from './greedy.ts';

interface ModelCheckRequest {
  readonly engine: CheckTarget['engine'];
  readonly prompt: string;
  /** A text to measure how well the model predicts it; absent = none. */
  readonly text?: string | undefined;
  /** Generated tokens, and timed decode steps; default 32. */
  readonly steps?: number;
  /** Milliseconds, monotonic. */
  readonly now: () => number;
}

export interface ModelCheck {
  /** Dimensions and KV cache in one line. */
  readonly summary: string;
  /** The warning that the origin would log at the start; null if there is none. */
  readonly warning: string | null;
  /** Disk space of the directory. */
  readonly bytes: number;
  readonly promptTokens: number;
  /** Greedy continuation of the prompt. */
  readonly text: string;
  readonly speed: ModelSpeed;
  readonly invariance: BatchInvariance;
  readonly likelihood: TextLikelihood | null;
}

/** Tokens per second in one short run, which can tell 10 from 100 but not 95 from 100. */
interface ModelSpeed {
  readonly prefill: number;
  /** One sequence. */
  readonly decode: number;
  /** All slots together. */
  readonly batch: number;
}

const COMPARED_STEPS = 4;
const STEPS = 32;
/** Tokens of the timed prefill, by those of decode steps: a prefill computes so many more at once. */
const PREFILL_FACTOR = 8;

/**
 * Loads a model directory as the origin does, generates from one prompt, measures speed and batch invariance.
 * @throws Error with one line if the origin could not load the model
 */
export async function checkModel(request: ModelCheckRequest): Promise<ModelCheck> {
  const { steps = STEPS } = request;
  const { directory, variant, slots, contextLength, threads, device, kvMemoryBytes } = request.engine;
  const tokenizer = Tokenizer.of(textsOf(directory), MARKERS);
  const { runner, images, summary, warning } = await openModel({
    directory,
    slots,
    threads,
    device,
    variant: variant ?? undefined,
    contextLength: contextLength ?? undefined,
    kvLimitBytes: kvMemoryBytes,
  });
  try {
    const prompt = tokenizer.encode(request.prompt, { addSpecialTokens: true, parseSpecial: true });
    const maxPrompt = runner.shape.contextLength - steps;
    if (prompt.length < 1 || prompt.length > maxPrompt) {
      throw new HubError(`the prompt has ${prompt.length} tokens; use 1 to ${maxPrompt}`);
    }
    const generated = await continueGreedily(runner, prompt, steps, new Set(tokenizer.eosIds));
    const compared = repeat(prompt, Math.max(prompt.length, slots));
    const timed = repeat(prompt, Math.min(PREFILL_FACTOR * steps, maxPrompt));
    return {
      summary,
      warning,
      bytes: await bytesBelow(directory),
      promptTokens: prompt.length,
      text: tokenizer.decode(generated, { skipSpecialTokens: true }),
      invariance: await measureBatchInvariance(runner, compared, COMPARED_STEPS),
      speed: await measureSpeed(runner, timed, steps, request.now),
      likelihood: request.text === undefined ? null : await measureText(runner, tokenizer, request.text),
    };
  } finally {
    runner.dispose();
    images?.dispose();
  }
}

/** Repeats the tokens up to a length. */
const repeat = (tokens: readonly number[], length: number): number[] =>
  Array.from({ length }, (_, index) => tokens[index % tokens.length]!);

/**
 * Times one prefill and then `steps` decode steps of one slot and of all slots.
 * @param now Milliseconds, monotonic
 */
export async function measureSpeed(
  runner: ModelRunner,
  tokens: readonly number[],
  steps: number,
  now: () => number,
): Promise<ModelSpeed> {
  const { slots } = runner.shape;
  const rateOf = async (count: number, work: () => Promise<unknown>): Promise<number> => {
    const start = now();
    await work();
    return (1000 * count) / Math.max(now() - start, Number.EPSILON);
  };
  const decodeSteps = async (rows: number) => {
    for (let step = 0; step < steps; step += 1) {
      const row = { token: tokens[step % tokens.length]!, position: tokens.length + step };
      await decode(runner, 0, Array<typeof row>(rows).fill(row), () => tokens.length);
    }
  };
  const prefillRate = await rateOf(tokens.length, () => prefill(runner, 0, tokens));
  for (let slot = 1; slot < slots; slot += 1) runner.copy(0, slot, tokens.length);
  return {
    prefill: prefillRate,
    decode: await rateOf(steps, () => decodeSteps(1)),
    batch: await rateOf(steps * slots, () => decodeSteps(slots)),
  };
}
