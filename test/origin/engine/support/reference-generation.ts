import type { Submission } from '../../../../origin/engine/messages.ts';
import { Healing, type HealingStep } from '../../../../origin/engine/text/healing.ts';
import type { ModelShape } from '../../../../origin/model/model-runner.ts';
import { SimdKernel } from '../../../../origin/sampling/kernel/simd-kernel.ts';
import { tokenLogprob } from '../../../../origin/sampling/logprobs.ts';
import { Sampler } from '../../../../origin/sampling/sampler.ts';
import { TokenHistory } from '../../../../origin/sampling/token-history.ts';
import { SamplerWorkspace } from '../../../../origin/sampling/workspace.ts';
import type { EventOf, TokenLogprob, TopLogprob } from '../../../../shared/generation.ts';
import { MODEL } from './scripted-runner.ts';
import type { ChoiceTranscript, Transcript } from './transcript.ts';
import { bytesOfToken, EOS, isSpecial, TOKEN_BYTES } from './vocabulary.ts';

const KERNEL = new SimdKernel();

/** Returns the longest text that does not depend on the bytes that follow. */
function certainText(bytes: readonly number[]): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(Uint8Array.from(bytes), { stream: true });
}

function wholeText(bytes: readonly number[]): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(Uint8Array.from(bytes));
}

/** Returns the first stop string that ends after `from`: earliest end, then earliest start. */
function findStop(
  text: string,
  from: number,
  stops: readonly string[],
): { start: number; stop: string } | null {
  for (let end = from + 1; end <= text.length; end++) {
    for (let start = 0; start < end; start++) {
      const stop = stops.find((candidate) => candidate === text.slice(start, end));
      if (stop !== undefined) return { start, stop };
    }
  }
  return null;
}

function promptEntries(tokens: Int32Array, chunk: number): string[] {
  return [...tokens].map((token, position) => {
    const start = position - (position % chunk);
    return MODEL.prefillEntry(token, position, start, Math.min(chunk, tokens.length - start));
  });
}

const latin1 = (id: number) => String.fromCharCode(...bytesOfToken(id));

function entry(
  logits: Float32Array,
  id: number,
  top: number | readonly number[],
  hidden: boolean,
): TokenLogprob {
  const scored = tokenLogprob(logits, id, top, new SamplerWorkspace(logits.length, KERNEL));
  return {
    id,
    bytes: latin1(id),
    logprob: scored.logprob,
    topLogprobs: scored.top.map(([other, logprob]) => [other, latin1(other), logprob]),
    ...(hidden ? { hidden } : {}),
  };
}

/** Removes bytes of the prompt from the start of a token, and of the most likely tokens that begin with them. */
function withoutStart(token: TokenLogprob, start: Uint8Array): TokenLogprob {
  const prefix = String.fromCharCode(...start);
  const cut = (bytes: string) => (bytes.startsWith(prefix) ? bytes.slice(prefix.length) : bytes);
  const topLogprobs = token.topLogprobs?.map(([id, bytes, logprob]): TopLogprob => [id, cut(bytes), logprob]);
  return { ...token, bytes: cut(token.bytes), topLogprobs: topLogprobs ?? null };
}

/** Returns how many tokens come before this one, plus one. Among equal logits, lower ids come first. */
const rankOf = (id: number, logits: Float32Array): number =>
  1 + logits.filter((logit, other) => logit > logits[id]! || (logit === logits[id] && other < id)).length;

/** Computes one choice by the simplest means: no batch, no cache, no streaming. */
function plainChoice(
  submission: Submission,
  promptIndex: number,
  candidate: number,
  shape: Pick<ModelShape, 'prefillChunk' | 'vocabularySize'>,
): ChoiceTranscript {
  const { tokens: prompt, maxTokens, healFrom } = submission.prompts[promptIndex]!;
  const choice = promptIndex * submission.choices + candidate;
  const own = [...(submission.ignoreEos ? [] : [EOS]), ...submission.endTokenIds];
  const ends = [...own, ...submission.stopTokenIds];
  let history = new TokenHistory(prompt, prompt.length + maxTokens);
  const identity = { seed: submission.sampling.seed, prompt: promptIndex, choice: candidate };
  const workspace = new SamplerWorkspace(shape.vocabularySize, KERNEL);
  const vocabulary = { tokenBytes: TOKEN_BYTES, encode: () => [] };
  const sampler = new Sampler(submission.sampling, identity, vocabulary, workspace);
  let entries = promptEntries(prompt, shape.prefillChunk);
  let healed: HealingStep | null = null;
  let healedId = -1;
  if (healFrom !== undefined && maxTokens > 0) {
    const healing = new Healing(prompt, healFrom);
    for (let at = healFrom; at < prompt.length; at++) {
      healing.add(MODEL.logits(entries.slice(0, at), shape.vocabularySize));
    }
    for (const step of healing.steps(TOKEN_BYTES, () => true)) {
      const before = new TokenHistory(prompt.subarray(0, step.at), prompt.length + maxTokens);
      healedId = sampler.sample(step.conditioned, before, step.at - prompt.length, step.mask, []);
      if (healedId === step.own) continue;
      healed = step;
      history = before;
      entries = entries.slice(0, step.at);
      break;
    }
  }
  const result: ChoiceTranscript = { text: '', tokens: [], ids: [], completionTokens: 0, finish: null };
  const bytes: number[] = [];
  let reason: 'stop' | 'length' = 'length';
  let stopReason: string | number | null = null;
  let stopText: string | null = null;
  let score = 0;

  for (let step = 0; step < maxTokens; step++) {
    const logits = MODEL.logits(entries, shape.vocabularySize);
    const forbidden = step < submission.minTokens ? ends : [];
    const rest = step === 0 && healed ? healed.rest : new Uint8Array(0);
    const id = step === 0 && healed ? healedId : sampler.sample(logits, history, step, null, forbidden);
    const ending = ends.includes(id);
    const named = submission.stopTokenIds.includes(id);
    const hidden = ending
      ? !(named && submission.includeStop)
      : submission.skipSpecialTokens && isSpecial(id);
    entries.push(MODEL.decodeEntry(id, history.length));
    history.push(id);
    result.completionTokens++;
    if (submission.tokenIds) result.ids.push(id);
    if (submission.topLogprobs !== null)
      result.tokens.push(
        withoutStart(entry(logits, id, submission.logprobTokenIds ?? submission.topLogprobs, hidden), rest),
      );
    score += entry(logits, id, 0, false).logprob ?? 0;
    const before = certainText(bytes).length;
    if (!hidden) bytes.push(...bytesOfToken(id).slice(rest.length));
    if (ending) {
      reason = 'stop';
      stopReason = named ? id : null;
      break;
    }
    const text = certainText(bytes);
    const found = step + 1 >= submission.minTokens ? findStop(text, before, submission.stop) : null;
    if (found !== null) {
      reason = 'stop';
      stopReason = found.stop;
      stopText = text.slice(0, found.start + (submission.includeStop ? found.stop.length : 0));
      break;
    }
  }
  result.text = stopText ?? wholeText(bytes);
  result.finish = {
    type: 'finish',
    choice,
    reason,
    stopReason,
    completionTokens: result.completionTokens,
    ...(submission.scores ? { score } : {}),
  };
  return result;
}

/** Computes the `prompt` event in the same way. */
export function plainPrompt(submission: Submission, promptIndex: number, chunk: number): EventOf<'prompt'> {
  const { tokens, logprobsFrom = 0 } = submission.prompts[promptIndex]!;
  const hides = (id: number) => submission.skipSpecialTokens && isSpecial(id);
  const visible = [...tokens].filter((id) => !hides(id));
  const event: EventOf<'prompt'> = {
    type: 'prompt',
    prompt: promptIndex,
    text: wholeText(visible.flatMap(bytesOfToken)),
    ids: [...tokens],
  };
  const top = submission.promptTopLogprobs;
  if (top === null) return event;
  const entries = promptEntries(tokens, chunk);
  const scored = [...tokens].map((id, at) => {
    const hidden = hides(id) ? { hidden: true } : {};
    if (at <= logprobsFrom) return { id, bytes: latin1(id), logprob: null, topLogprobs: null, ...hidden };
    const logits = MODEL.logits(entries.slice(0, at), TOKEN_BYTES.vocabularySize);
    const known = entry(logits, id, top, hides(id));
    const isListed = known.topLogprobs?.some(([other]) => other === id);
    return isListed ? known : { ...known, rank: rankOf(id, logits) };
  });
  return { ...event, logprobs: scored };
}

/** Computes a whole request in the same way. */
export function plainTranscript(
  submission: Submission,
  shape: Pick<ModelShape, 'prefillChunk' | 'vocabularySize'>,
): Transcript {
  const transcript: Transcript = { prompts: new Map(), choices: new Map(), end: null };
  const { prompts, choices, echo, promptTopLogprobs } = submission;
  let completionTokens = 0;
  prompts.forEach((_, index) => {
    for (let candidate = 0; candidate < choices; candidate++) {
      const choice = plainChoice(submission, index, candidate, shape);
      completionTokens += choice.completionTokens;
      transcript.choices.set(index * choices + candidate, choice);
    }
    if (echo || promptTopLogprobs !== null) {
      transcript.prompts.set(index, plainPrompt(submission, index, shape.prefillChunk));
    }
  });
  const promptTokens = prompts.reduce((total, { tokens }) => total + tokens.length, 0);
  transcript.end = { promptTokens, completionTokens };
  return transcript;
}
