import type { ModelRunner, TokenScore } from '../../model-runner.ts';

/** Largest error of a logprob: sums of float32, each by the device's own exponential. */
const TOLERANCE = 1e-4;
/** Rows that are computed, and most likely tokens that are compared of some of them. */
const ROWS = 32;
const TOP = 20;

type Scoring = Pick<ModelRunner, 'shape' | 'prefill'> & Required<Pick<ModelRunner, 'score'>>;

/** Compares scores of a device with those of whole rows. Returns what differs, or null. */
export async function scoreFault(runner: Scoring): Promise<string | null> {
  const { vocabularySize, prefillChunk, contextLength, maxScored = 0 } = runner.shape;
  const length = Math.min(ROWS, prefillChunk, contextLength, maxScored);
  const tokens = Int32Array.from({ length }, (_, at) => (7 * at + 1) % vocabularySize);
  const next = Int32Array.from({ length }, (_, at) => (11 * at + 3) % vocabularySize);
  const chunk = { slot: 0, start: 0, tokens, logitsAt: Int32Array.from(tokens.keys()) };
  const { signal } = new AbortController();
  const whole = (await runner.prefill(chunk, signal)).slice();
  const scored = await runner.score([chunk], next, signal);
  const ofRow = (row: number) => whole.subarray(row * vocabularySize, (row + 1) * vocabularySize);
  let compared = 0;
  for (const row of new Set([0, length >> 1, length - 1])) {
    const score = scored.score(row, TOP);
    if (score === null) continue;
    compared += 1;
    if (!agrees(score, scoreOf(ofRow(row), next[row]!))) return `row ${row} of ${length} has another score`;
  }
  if (compared === 0) return 'no row has a score';
  const brought = scored.row(length - 1);
  const isSame = ofRow(length - 1).every((logit, id) => logit === brought[id]);
  return isSame ? null : 'other logits than those of a whole row';
}

const agrees = (score: TokenScore, right: TokenScore): boolean =>
  score.rank === right.rank &&
  isNear(score.logprob, right.logprob) &&
  score.top.length === right.top.length &&
  score.top.every(([id, logprob], at) => id === right.top[at]![0] && isNear(logprob, right.top[at]![1]));

const isNear = (left: number, right: number): boolean => Math.abs(left - right) <= TOLERANCE;

function scoreOf(logits: Float32Array, next: number): TokenScore {
  const isBefore = (a: number, b: number) => logits[a]! > logits[b]! || (logits[a] === logits[b] && a < b);
  const highest = logits.reduce((most, logit) => Math.max(most, logit), Number.NEGATIVE_INFINITY);
  const normalizer = highest + Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit - highest), 0));
  const top: number[] = [];
  let rank = 1;
  // Sorting a whole row takes a tenth of a second.
  for (const id of logits.keys()) {
    if (isBefore(id, next)) rank += 1;
    if (top.length === TOP && !isBefore(id, top.at(-1)!)) continue;
    const place = top.findIndex((listed) => isBefore(id, listed));
    top.splice(place < 0 ? top.length : place, 0, id);
    if (top.length > TOP) top.pop();
  }
  const logprobOf = (id: number) => logits[id]! - normalizer;
  return { logprob: logprobOf(next), rank, top: top.map((id) => [id, logprobOf(id)] as const) };
}
