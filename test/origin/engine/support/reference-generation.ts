import type { Submission } from '../../../../origin/engine/messages.ts';
import { Healing, type HealingStep } from '../../../../origin/engine/text/healing.ts';
import type { ModelShape } from '../../../../origin/model/model-runner.ts';
import { SimdKernel } from '../../../../origin/sampling/kernel/simd-kernel.ts';
import { logprobRow } from '../../../../origin/sampling/logprob-row.ts';
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

/** Returns the first stop that ends after `from`: earliest end, then earliest start. */
function findStop(
  text: string,
  from: number,
  stops: readonly (string | RegExp)[],
): { start: number; stop: string } | null {
  for (let end = from + 1; end <= text.length; end++) {
    for (let start = 0; start < end; start++) {
      const part = text.slice(start, end);
      const matches = (stop: string | RegExp) =>
        typeof stop === 'string' ? stop === part : part.isWellFormed() && stop.test(part);
      if (stops.some(matches)) return { start, stop: part };
    }
  }
  return null;
}

/** @param split position where a run ends beside the grid */
function promptEntries(tokens: Int32Array, chunk: number, split: number): string[] {
  return [...tokens].map((token, position) => {
    const cell = position - (position % chunk);
    const start = position >= split ? Math.max(cell, split) : cell;
    const end = Math.min(cell + chunk, tokens.length, position < split ? split : Infinity);
    return MODEL.prefillEntry(token, position, start, end - start);
  });
}

/** How a model computes prompts, and whether it has states: then a prompt to be healed is split there. */
export interface ReferenceShape extends Pick<ModelShape, 'prefillChunk' | 'vocabularySize'> {
  readonly hasStates?: boolean;
}

const splitOf = ({ healFrom, maxTokens }: Submission['prompts'][number], { hasStates }: ReferenceShape) =>
  hasStates && maxTokens > 0 ? (healFrom ?? Infinity) : Infinity;

const latin1 = (id: number) => String.fromCharCode(...bytesOfToken(id));

function entry(
  logits: Float32Array,
  id: number,
  top: number | readonly number[],
  hidden: boolean,
  rows?: Submission['logprobRows'],
): TokenLogprob {
  const workspace = new SamplerWorkspace(logits.length, KERNEL);
  const scored = tokenLogprob(logits, id, top, workspace);
  return {
    ...(rows && { row: logprobRow(logits, rows, workspace) }),
    id,
    bytes: latin1(id),
    logprob: scored.logprob,
    topLogprobs: scored.top.map(([other, logprob]) => [other, latin1(other), logprob]),
    ...(hidden ? { hidden } : {}),
  };
}

/** Removes bytes from the start of a token, and of the most likely tokens that begin with them. */
function withoutStart(token: TokenLogprob, start: Uint8Array): TokenLogprob {
  const prefix = String.fromCharCode(...start);
  const cut = (bytes: string) => (bytes.startsWith(prefix) ? bytes.slice(prefix.length) : bytes);
  const topLogprobs = token.topLogprobs?.map(([id, bytes, logprob]): TopLogprob => [id, cut(bytes), logprob]);
  return { ...token, bytes: cut(token.bytes), topLogprobs: topLogprobs ?? null };
}

/** Returns how many tokens come before this one, plus one. Among equal logits, lower ids come first. */
const rankOf = (id: number, logits: Float32Array): number =>
  1 + logits.filter((logit, other) => logit > logits[id]! || (logit === logits[id] && other < id)).length;

/** A banned phrase was generated: the token that began it may not follow these tokens. */
interface Banned {
  readonly after: string;
  readonly id: number;
  /** Number of tokens to undo. */
  readonly undone: number;
  /** First position of the prompt that is decoded afterwards, because a healed token has taken its place. */
  readonly decodedFrom: number;
}

/** Returns the index of the token that a character of the text begins in. */
function tokenOf(text: string, at: number, bytes: readonly number[], owners: readonly number[]): number {
  const end = bytes.findIndex((_, index) => certainText(bytes.slice(0, index + 1)).length > at) + 1;
  return owners[end - new TextEncoder().encode(String.fromCodePoint(text.codePointAt(at)!)).length]!;
}

/**
 * Computes one choice by the simplest means: no batch, no cache, no streaming.
 * @param bans tokens that may not follow others
 * @param limit most tokens
 */
function attempt(
  submission: Submission,
  promptIndex: number,
  candidate: number,
  shape: ReferenceShape,
  bans: readonly Banned[],
  limit: number,
): ChoiceTranscript | Banned {
  const { tokens: prompt, maxTokens, healFrom } = submission.prompts[promptIndex]!;
  const choice = promptIndex * submission.choices + candidate;
  const own = [...(submission.ignoreEos ? [] : [EOS]), ...submission.endTokenIds];
  const ends = [...own, ...submission.stopTokenIds];
  const phrases = (submission.bannedPhrases ?? []).map((phrase) =>
    typeof phrase === 'string' ? phrase : new RegExp(`^(?:${phrase.regex})$`, 'u'),
  );
  let history = new TokenHistory(prompt, prompt.length + maxTokens);
  const identity = { seed: submission.sampling.seed, prompt: promptIndex, choice: candidate };
  const workspace = new SamplerWorkspace(shape.vocabularySize, KERNEL);
  const sampler = new Sampler(submission.sampling, identity, TOKEN_BYTES, workspace);
  const split = splitOf(submission.prompts[promptIndex]!, shape);
  let entries = promptEntries(prompt, shape.prefillChunk, split);
  const keyOf = () =>
    `${history.promptLength}: ${history.tokens.slice(history.promptLength, history.length)}`;
  const bannedAfter = (key: string) => bans.filter(({ after }) => after === key).map(({ id }) => id);
  let healed: HealingStep | null = null;
  let healedId = -1;
  if (healFrom !== undefined && maxTokens > 0) {
    const healing = new Healing(prompt, healFrom);
    for (let at = healFrom; at < prompt.length; at++) {
      healing.add(MODEL.logits(entries.slice(0, at), shape.vocabularySize));
    }
    const whole = history;
    for (const step of healing.steps(TOKEN_BYTES, () => true)) {
      history = new TokenHistory(prompt.subarray(0, step.at), prompt.length + maxTokens);
      const banned = bannedAfter(keyOf());
      healedId = sampler.sample(step.conditioned, history, step.at - prompt.length, step.mask, banned);
      if (healedId === step.promptId) continue;
      healed = step;
      entries = entries.slice(0, step.at);
      break;
    }
    if (healed === null) history = whole;
  }
  const result: ChoiceTranscript = { text: '', tokens: [], ids: [], completionTokens: 0, finish: null };
  const bytes: number[] = [];
  const owners: number[] = [];
  const keys: string[] = [];
  let reason: 'stop' | 'length' = 'length';
  let stopReason: string | number | null = null;
  let stopText: string | null = null;
  let score = 0;

  for (let step = 0; step < limit; step++) {
    const logits = MODEL.logits(entries, shape.vocabularySize);
    const forbidden = [...(step < submission.minTokens ? ends : []), ...bannedAfter(keyOf())];
    const rest = step === 0 && healed ? healed.rest : new Uint8Array(0);
    const id = step === 0 && healed ? healedId : sampler.sample(logits, history, step, null, forbidden);
    const ending = ends.includes(id);
    const named = submission.stopTokenIds.includes(id);
    const hidden = ending
      ? !(named && submission.includeStop)
      : submission.skipSpecialTokens && isSpecial(id);
    if (step === 0) {
      const first = Math.min(...bans.map(({ decodedFrom }) => decodedFrom));
      // A state is computed again from the split.
      const from = split < prompt.length && (healed || first < prompt.length) ? split : first;
      entries = entries.map((known, at) => (at < from ? known : MODEL.decodeEntry(prompt[at]!, at)));
    }
    entries.push(MODEL.decodeEntry(id, history.length));
    keys.push(keyOf());
    history.push(id);
    result.completionTokens++;
    if (submission.tokenIds) result.ids.push(id);
    if (submission.topLogprobs !== null)
      result.tokens.push(
        withoutStart(
          entry(
            logits,
            id,
            submission.logprobTokenIds ?? submission.topLogprobs,
            hidden,
            submission.logprobRows,
          ),
          rest,
        ),
      );
    score += entry(logits, id, 0, false).logprob ?? 0;
    const before = certainText(bytes).length;
    if (!hidden) {
      const own = bytesOfToken(id).slice(rest.length);
      bytes.push(...own);
      owners.push(...own.map(() => step));
    }
    const text = certainText(bytes);
    const isArmed = !ending && step + 1 >= submission.minTokens;
    const found = isArmed ? findStop(text, before, submission.stop) : null;
    const cut = found && found.start + (submission.includeStop ? found.stop.length : 0);
    const phrase = findStop(text, before, phrases);
    if (phrase !== null && (cut === null || phrase.start + phrase.stop.length <= cut)) {
      const first = tokenOf(text, phrase.start, bytes, owners);
      const banned = history.at(history.promptLength + first);
      const undone = step + 1 - first;
      const decodedFrom = first === 0 && undone > 1 ? history.promptLength : Number.POSITIVE_INFINITY;
      return { after: keys[first]!, id: banned, undone, decodedFrom };
    }
    if (ending) {
      reason = 'stop';
      stopReason = named ? id : null;
      break;
    }
    if (found !== null) {
      reason = 'stop';
      stopReason = found.stop;
      stopText = text.slice(0, cut!);
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

/** Starts anew after each banned phrase. */
function plainChoice(
  submission: Submission,
  promptIndex: number,
  candidate: number,
  shape: ReferenceShape,
): ChoiceTranscript {
  const { maxTokens } = submission.prompts[promptIndex]!;
  const bans: Banned[] = [];
  for (let undone = 0; ; undone += bans.at(-1)!.undone) {
    const result = attempt(submission, promptIndex, candidate, shape, bans, maxTokens - undone);
    if ('after' in result) {
      bans.push(result);
      continue;
    }
    const completionTokens = result.completionTokens + undone;
    return { ...result, completionTokens, finish: { ...result.finish!, completionTokens } };
  }
}

/** Computes the `prompt` event in the same way. */
export function plainPrompt(
  submission: Submission,
  promptIndex: number,
  shape: ReferenceShape,
): EventOf<'prompt'> {
  const { tokens, logprobsFrom = 0, echoFrom = 0 } = submission.prompts[promptIndex]!;
  const hides = (id: number) => submission.skipSpecialTokens && isSpecial(id);
  const visible = [...tokens].slice(echoFrom).filter((id) => !hides(id));
  const event: EventOf<'prompt'> = {
    type: 'prompt',
    prompt: promptIndex,
    text: wholeText(visible.flatMap(bytesOfToken)),
    ids: [...tokens].slice(echoFrom),
  };
  const top = submission.promptTopLogprobs;
  if (top === null) return event;
  const split = splitOf(submission.prompts[promptIndex]!, shape);
  const entries = promptEntries(tokens, shape.prefillChunk, split);
  const scored = [...tokens].map((id, at) => {
    const hidden = hides(id) ? { hidden: true } : {};
    if (at <= logprobsFrom) return { id, bytes: latin1(id), logprob: null, topLogprobs: null, ...hidden };
    const logits = MODEL.logits(entries.slice(0, at), TOKEN_BYTES.vocabularySize);
    const rows = submission.logprobRows?.prompt ? submission.logprobRows : undefined;
    const known = entry(logits, id, top, hides(id), rows);
    const isListed = known.topLogprobs?.some(([other]) => other === id);
    return isListed ? known : { ...known, rank: rankOf(id, logits) };
  });
  return { ...event, logprobs: scored.slice(echoFrom) };
}

/** Computes a whole request in the same way. */
export function plainTranscript(submission: Submission, shape: ReferenceShape): Transcript {
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
      transcript.prompts.set(index, plainPrompt(submission, index, shape));
    }
  });
  const promptTokens = prompts.reduce((total, { tokens }) => total + tokens.length, 0);
  transcript.end = { promptTokens, completionTokens };
  return transcript;
}
