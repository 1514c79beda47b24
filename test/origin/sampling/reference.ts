import type { SamplingParameters } from '../../../shared/sampling.ts';

/**
 * The sampling rules written down plainly: full sorts, float64, no shortcuts. Shares no code with the
 * sampler. Where a probability meets a cut within 2^-20 it counts as equal to it, as the sampler documents.
 */
const RESOLUTION = 2 ** -20;
/** e^−708: weights below it are zero to the sampler. */
const SMALLEST = Math.exp(-708);

/** The greatest float32. */
const GREATEST = (2 - 2 ** -23) * 2 ** 127;

export interface Situation {
  readonly parameters: SamplingParameters;
  readonly logits: readonly number[];
  readonly prompt: readonly number[];
  readonly generated: readonly number[];
  readonly mask: readonly number[] | null;
  readonly forbidden: readonly number[];
  /** Token sequences of each bad word. */
  readonly badSequences: readonly (readonly number[])[];
  /** Token sequences that are a DRY breaker; length 1 if a single token is one. */
  readonly breakers: readonly (readonly number[])[];
}

export interface Share {
  readonly id: number;
  readonly p: number;
}

export function processed(situation: Situation): number[] {
  const { parameters: s, prompt, generated } = situation;
  const allowed = s.allowedTokenIds;
  const all = [...prompt, ...generated];
  let z = situation.logits.map((logit, id) => {
    const open = situation.mask?.includes(id) ?? true;
    return open && (allowed?.includes(id) ?? true) && !situation.forbidden.includes(id) ? logit : -Infinity;
  });
  for (const word of situation.badSequences) {
    const before = word.slice(0, -1);
    if (before.length <= all.length && before.every((id, i) => all[all.length - before.length + i] === id)) {
      z[word.at(-1)!] = -Infinity;
    }
  }
  for (const [id, bias] of s.logitBias) if (id < z.length) z[id] = bias === null ? -Infinity : z[id]! + bias;
  z = z.map(Math.fround);
  const start = s.repeatLastN < 0 ? 0 : Math.max(0, all.length - s.repeatLastN);
  const windowed = all.slice(start);
  const counted = s.penaltyScope === 'all' ? windowed : all.slice(Math.max(start, prompt.length));
  z = z.map((value, id) => {
    if (!windowed.includes(id)) return value;
    return Math.fround(
      value > 0 ? Math.min(value / s.repetitionPenalty, GREATEST) : value * s.repetitionPenalty,
    );
  });
  z = z.map((value, id) => {
    const count = counted.filter((token) => token === id).length;
    return count === 0 ? value : Math.fround(value - (count * s.frequencyPenalty + s.presencePenalty));
  });
  return dryPenalised(z, all, s, situation.breakers);
}

function dryPenalised(
  z: number[],
  all: readonly number[],
  s: SamplingParameters,
  breakers: readonly (readonly number[])[],
): number[] {
  if (s.dryMultiplier === 0 || s.dryBase < 1 || s.dryPenaltyLastN === 0) return z;
  const h = s.dryPenaltyLastN < 0 ? all : all.slice(-s.dryPenaltyLastN);
  const allowed = s.dryAllowedLength;
  if (h.length <= allowed) return z;
  const endsAt = (start: number) =>
    breakers
      .filter((tokens) => tokens.every((id, i) => h[start + i] === id))
      .reduce((end, tokens) => Math.max(end, start + tokens.length), -1);
  let limit = h.length;
  for (let start = h.length - 1; start >= 0 && limit === h.length; start--) {
    if (endsAt(start) >= 0) limit = h.length - endsAt(start);
  }
  if (limit < allowed) return z;
  const repeats = new Map<number, number>();
  for (let e = 0; e < h.length - 1; e++) {
    let length = 0;
    while (length <= e && h[e - length] === h[h.length - 1 - length]) length++;
    const next = h[e + 1]!;
    repeats.set(next, Math.max(repeats.get(next) ?? 0, Math.min(length, limit)));
  }
  return z.map((value, id) => {
    const length = repeats.get(id);
    const free = length === undefined || length < allowed;
    if (free || breakers.some((tokens) => tokens.length === 1 && tokens[0] === id)) return value;
    return Math.fround(value - s.dryMultiplier * s.dryBase ** (length - allowed));
  });
}

/** Softmax over everything not forbidden, in order of ids; one token if greedy. */
function tempered(z: readonly number[], s: SamplingParameters): Share[] {
  const best = z.indexOf(Math.max(...z));
  let t = s.temperature;
  if (t >= 1e-5 && s.dynatempRange > 0) {
    const p = softmax(z, 1).map((share) => share.p);
    const entropy = sum(p.map((x) => (x > 0 ? -x * Math.log(x) : 0)));
    const low = Math.max(0, t - s.dynatempRange);
    const ratio = p.length > 1 ? Math.max(0, entropy) / Math.log(p.length) : 0;
    if (p.length > 1) t = low + (t + s.dynatempRange - low) * ratio ** s.dynatempExponent;
  }
  return t < 1e-5 ? [{ id: best, p: 1 }] : softmax(z, t);
}

/** @param xtcUniform the number that decides whether XTC acts in this step. */
export function distribution(situation: Situation, xtcUniform: number): Share[] {
  const s = situation.parameters;
  const z = processed(situation);
  let kept = tempered(z, s);
  if (kept.length === 1) return kept;
  const least = Math.max(1, s.minKeep);
  if (s.topNSigma > 0) {
    const values = kept.map(({ id }) => z[id]!);
    const mean = sum(values) / values.length;
    const sigma = Math.sqrt(sum(values.map((v) => (v - mean) ** 2)) / values.length);
    const cut = Math.max(...values) - s.topNSigma * sigma;
    kept = firstOf(bestFirst(kept, z), (share, i) => i < least || z[share.id]! >= cut);
  }
  if (s.topK > 0) kept = bestFirst(kept, z).slice(0, Math.max(s.topK, least));
  kept = normalised(kept);
  if (s.typicalP < 1) {
    const entropy = sum(kept.map(({ p }) => (p > 0 ? -p * Math.log(p) : 0)));
    const distance = ({ p }: Share) => Math.abs(-Math.log(p) - entropy);
    const ordered = kept.toSorted((a, b) => distance(a) - distance(b) || a.id - b.id);
    kept = prefix(ordered, least, (mass) => mass >= s.typicalP + RESOLUTION);
  }
  if (s.topP < 1) kept = prefix(bestFirst(kept, z), least, (mass) => mass >= s.topP - RESOLUTION);
  if (s.minP > 0) {
    const ordered = bestFirst(kept, z);
    const cut = s.minP * (1 - RESOLUTION) * ordered[0]!.p;
    kept = normalised(firstOf(ordered, ({ p }, i) => i < least || p >= cut));
  }
  if (s.xtcProbability > xtcUniform && s.xtcThreshold <= 0.5) {
    const likely = likeliestFirst(kept).filter(({ p }) => p >= s.xtcThreshold - RESOLUTION);
    const removed = likely.slice(0, -1).map(({ id }) => id);
    if (kept.length - removed.length >= s.minKeep) kept = kept.filter(({ id }) => !removed.includes(id));
  }
  return normalised(kept);
}

/** Inverse CDF in ascending order of ids. */
export function drawn(shares: readonly Share[], uniform: number): number {
  let cumulated = 0;
  for (const { id, p } of shares.toSorted((a, b) => a.id - b.id)) {
    cumulated += p;
    if (cumulated > uniform) return id;
  }
  return shares.at(-1)!.id;
}

export function softmax(z: readonly number[], temperature: number): Share[] {
  const highest = Math.max(...z);
  const weights = z.map((value, id) => ({ id, p: Math.exp((value - highest) / temperature), value }));
  return normalised(weights.filter(({ value }) => value > -Infinity));
}

export function normalised(shares: readonly Share[]): Share[] {
  const mass = sum(shares.map(({ p }) => p));
  return shares.map(({ id, p }) => ({ id, p: p / mass })).sort((a, b) => a.id - b.id);
}

function bestFirst(shares: readonly Share[], z: readonly number[]): Share[] {
  return shares.toSorted((a, b) => z[b.id]! - z[a.id]! || a.id - b.id);
}

/** Probabilities that float64 rounds to zero are equal, although their logits differ. */
function likeliestFirst(shares: readonly Share[]): Share[] {
  const told = ({ p }: Share) => (p < SMALLEST ? 0 : p);
  return shares.toSorted((a, b) => told(b) - told(a) || a.id - b.id);
}

function firstOf(ordered: readonly Share[], keeps: (share: Share, i: number) => boolean): Share[] {
  const end = ordered.findIndex((share, i) => !keeps(share, i));
  return end < 0 ? [...ordered] : ordered.slice(0, end);
}

function prefix(ordered: readonly Share[], least: number, enough: (mass: number) => boolean): Share[] {
  let mass = 0;
  const end = ordered.findIndex(({ p }, i) => {
    mass += p;
    return i + 1 >= least && enough(mass);
  });
  return normalised(end < 0 ? ordered : ordered.slice(0, end + 1));
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
