import { splitBreaker } from '../../../origin/request/sampling-texts.ts';
import type { Breaker } from '../../../origin/sampling/dry-breakers.ts';
import { SimdKernel } from '../../../origin/sampling/kernel/simd-kernel.ts';
import type { SamplerParameters } from '../../../origin/sampling/parameters.ts';
import { Sampler } from '../../../origin/sampling/sampler.ts';
import { TokenHistory } from '../../../origin/sampling/token-history.ts';
import { SamplerWorkspace } from '../../../origin/sampling/workspace.ts';
import type { TokenBytes } from '../../../origin/tokenizer/token-bytes.ts';
import { NEUTRAL_SAMPLING, type SamplingParameters } from '../../../shared/sampling.ts';
import type { Share } from './reference.ts';

const KERNEL = new SimdKernel();

/** A workspace with a kernel that all tests of a file share. */
export function workspaceOf(vocabularySize: number, sumsInFloat32?: boolean): SamplerWorkspace {
  return new SamplerWorkspace(vocabularySize, KERNEL, sumsInFloat32);
}

export interface TestVocabulary {
  readonly tokenBytes: TokenBytes;
  encode(text: string): readonly number[];
}

/** Prepares breakers as a request does. */
export function breakersOf(texts: readonly string[], encode: TestVocabulary['encode']): Breaker[] {
  return texts.map((text) => {
    const { bytes, rests } = splitBreaker(text);
    return { bytes, tokens: rests.map((rest) => (rest === null ? null : encode(rest))) };
  });
}

/** A vocabulary of these texts; the tokenizer takes the longest one that fits. */
export function vocabularyOf(texts: readonly string[]): TestVocabulary {
  const encoded = texts.map((text) => new TextEncoder().encode(text));
  const offsets = new Uint32Array(texts.length + 1);
  encoded.forEach((bytes, id) => {
    offsets[id + 1] = offsets[id]! + bytes.length;
  });
  const bytes = new Uint8Array(encoded.flatMap((part) => [...part]));
  const byLength = texts.map((text, id) => ({ text, id })).sort((a, b) => b.text.length - a.text.length);
  const encode = (text: string): number[] => {
    if (text === '') return [];
    const token = byLength.find((entry) => entry.text !== '' && text.startsWith(entry.text));
    return token ? [token.id, ...encode(text.slice(token.text.length))] : encode(text.slice(1));
  };
  return {
    tokenBytes: { vocabularySize: texts.length, bytes, offsets, special: new Uint8Array(texts.length) },
    encode,
  };
}

export interface Trial {
  readonly parameters: Partial<SamplerParameters & Pick<SamplingParameters, 'drySequenceBreakers'>>;
  /** A Float32Array is passed to the sampler itself. */
  readonly logits: readonly number[] | Float32Array;
  readonly prompt?: readonly number[];
  readonly generated?: readonly number[];
  readonly seed?: number;
  readonly step?: number;
  readonly texts?: readonly string[];
  readonly mask?: readonly number[] | null;
  readonly forbidden?: readonly number[];
}

export interface Outcome {
  readonly token: number;
  /** Tokens left to draw from, ascending, and their probabilities; none if they were not gathered. */
  readonly kept: Share[];
  /** Logits after all processors. */
  readonly scores: number[];
}

/** Draws one token with a fresh sampler. */
export function sampleOnce(trial: Trial, workspace = workspaceOf(trial.logits.length)): Outcome {
  const { logits, prompt = [], generated = [], seed = 1, step = 0, mask = null, forbidden = [] } = trial;
  const { tokenBytes, encode } = vocabularyOf(trial.texts ?? Array.from(logits, (_, id) => `<${id}>`));
  const { drySequenceBreakers, ...parameters } = { ...NEUTRAL_SAMPLING, ...trial.parameters };
  const dryBreakers = breakersOf(drySequenceBreakers, encode);
  const identity = { seed, prompt: 0, choice: 0 };
  const sampler = new Sampler({ ...parameters, dryBreakers }, identity, tokenBytes, workspace);
  const history = historyOf(prompt, generated);
  const row = logits instanceof Float32Array ? logits : Float32Array.from(logits);
  const bits = mask && bitsOf(mask, logits.length);
  const scores = [...sampler.process(row, history, bits, forbidden)];
  return { token: sampler.sample(row, history, step, bits, forbidden), kept: keptIn(workspace), scores };
}

function keptIn({ candidates }: SamplerWorkspace): Share[] {
  return Array.from({ length: candidates.count }, (_, i) => ({
    id: candidates.ids[i]!,
    p: candidates.weights[i]! / candidates.mass,
  }));
}

export function historyOf(prompt: readonly number[], generated: readonly number[]): TokenHistory {
  const history = new TokenHistory(Int32Array.from(prompt), prompt.length + generated.length + 64);
  for (const id of generated) history.push(id);
  return history;
}

export function bitsOf(ids: readonly number[], vocabularySize: number): Uint32Array {
  const words = new Uint32Array(Math.ceil(vocabularySize / 32));
  for (const id of ids) words[Math.floor(id / 32)]! |= 2 ** (id % 32);
  return words;
}
