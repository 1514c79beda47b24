import { csvText } from '@continuo/shared/csv.ts';
import type { ScoreLine } from './score-lines.ts';

/** The likelihood of one choice. */
export interface ChoiceScore {
  /** Sum over its tokens. */
  readonly logprob: number;
  readonly tokens: number;
  readonly bytes: number;
}

/** What is known of one line; neither scores nor fault = it waits. */
export interface LineResult {
  readonly line: ScoreLine;
  /** In the order of the choices. */
  readonly scores: readonly ChoiceScore[] | null;
  readonly fault: string | null;
}

/** What the best choice is best in: a sum prefers short choices. */
export const MEASURES = [
  ['sum', 'Sum'],
  ['token', 'Per token'],
  ['byte', 'Per byte'],
] as const;
export type Measure = (typeof MEASURES)[number][0];

export const scoreBy = ({ logprob, tokens, bytes }: ChoiceScore, measure: Measure): number =>
  measure === 'sum' ? logprob : logprob / (measure === 'token' ? tokens : bytes);

/** Returns the index of the best choice, of equal ones the first. */
export function bestOf(scores: readonly ChoiceScore[], measure: Measure): number {
  const values = scores.map((score) => scoreBy(score, measure));
  return values.indexOf(Math.max(...values));
}

export interface Accuracy {
  readonly right: number;
  /** Scored lines that name an answer. */
  readonly of: number;
}

export function accuracyOf(results: readonly LineResult[], measure: Measure): Accuracy {
  const asked = results.filter(({ line, scores }) => scores !== null && line.answer !== null);
  const right = asked.filter(({ line, scores }) => bestOf(scores!, measure) === line.answer);
  return { right: right.length, of: asked.length };
}

const figuresOf = (score: ChoiceScore) => ({
  logprob: score.logprob,
  logprob_per_token: scoreBy(score, 'token'),
  logprob_per_byte: scoreBy(score, 'byte'),
  token_count: score.tokens,
  byte_count: score.bytes,
});

/** The index of the best choice by each measure. */
const bestsOf = (scores: readonly ChoiceScore[]) => ({
  best: bestOf(scores, 'sum'),
  best_per_token: bestOf(scores, 'token'),
  best_per_byte: bestOf(scores, 'byte'),
});

/** One line per prompt, with all scores. */
export function resultsJsonl(model: string, results: readonly LineResult[]): string {
  const lines = results.map(({ line: { number, prompt, choices, answer }, scores, fault }) => ({
    line: number,
    model,
    prompt,
    choices,
    ...(answer !== null && { answer }),
    ...(fault !== null && { error: fault }),
    ...(scores !== null && { scores: scores.map(figuresOf), ...bestsOf(scores) }),
  }));
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('');
}

const COLUMNS =
  'line prompt choice_index choice logprob logprob_per_token logprob_per_byte token_count byte_count best best_per_token best_per_byte answer error'.split(
    ' ',
  );

/** One row per choice. */
export function resultsCsv(results: readonly LineResult[]): string {
  const rows = results.flatMap(({ line: { number, prompt, choices, answer }, scores, fault }) => {
    const bests = Object.entries(scores === null ? {} : bestsOf(scores));
    return choices.map((choice, index) => ({
      line: number,
      prompt,
      choice_index: index,
      choice,
      error: fault,
      answer: answer === null ? null : answer === index,
      ...(scores?.[index] && figuresOf(scores[index])),
      ...Object.fromEntries(bests.map(([name, best]) => [name, best === index])),
    }));
  });
  return csvText(COLUMNS, rows);
}
