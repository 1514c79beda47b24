import type { ModelRunner, TokenScore } from '../model-runner.ts';

/** Largest error of a logprob: sums of float32, each by the device's own exponential. */
const TOLERANCE = 1e-4;
/** Rows and most likely tokens that are compared. */
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
  let scores = 0;
  for (let row = 0; row < length; row++) {
    const logits = whole.subarray(row * vocabularySize, (row + 1) * vocabularySize);
    const score = scored.score(row, TOP);
    if (score !== null && ++scores > 0 && !agrees(score, scoreOf(logits, next[row]!)))
      return `row ${row} of ${length} has another score`;
  }
  if (scores === 0) return 'no row has a score';
  const last = scored.row(length - 1);
  const isSame = whole.subarray((length - 1) * vocabularySize).every((logit, id) => logit === last[id]);
  return isSame ? null : 'other logits than those of a whole row';
}

const agrees = (score: TokenScore, right: TokenScore): boolean =>
  score.rank === right.rank &&
  isNear(score.logprob, right.logprob) &&
  score.top.length === right.top.length &&
  score.top.every(([id, logprob], at) => id === right.top[at]![0] && isNear(logprob, right.top[at]![1]));

const isNear = (left: number, right: number): boolean => Math.abs(left - right) <= TOLERANCE;

function scoreOf(logits: Float32Array, next: number): TokenScore {
  const highest = logits.reduce((most, logit) => Math.max(most, logit), Number.NEGATIVE_INFINITY);
  const normalizer = highest + Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit - highest), 0));
  const ids = Array.from(logits.keys()).sort((a, b) => logits[b]! - logits[a]! || a - b);
  return {
    logprob: logits[next]! - normalizer,
    rank: 1 + ids.indexOf(next),
    top: ids.slice(0, TOP).map((id) => [id, logits[id]! - normalizer] as const),
  };
}
