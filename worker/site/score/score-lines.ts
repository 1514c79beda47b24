import { isJsonObject } from '@continuo/shared/json-object.ts';

/** Prompts with choices, one per line of JSON. */

export interface ScoreLine {
  /** From 1, as editors count. */
  readonly number: number;
  readonly prompt: string;
  readonly choices: readonly string[];
  /** Index of the right choice; null = none is named. */
  readonly answer: number | null;
}

/** A line that cannot be scored. */
export interface LineFault {
  readonly number: number;
  readonly fault: string;
}

export interface ReadLines {
  readonly lines: readonly ScoreLine[];
  readonly faults: readonly LineFault[];
}

/** Maximum of one request. */
const MAX_CHOICES = 256;

/** Reads lines; empty ones are skipped. */
export function readLines(text: string): ReadLines {
  const lines: ScoreLine[] = [];
  const faults: LineFault[] = [];
  for (const [at, line] of text
    .replace(/^\uFEFF/, '')
    .split('\n')
    .entries()) {
    if (line.trim() === '') continue;
    const read = readLine(line, at + 1);
    if ('fault' in read) faults.push(read);
    else lines.push(read);
  }
  return { lines, faults };
}

function readLine(line: string, number: number): ScoreLine | LineFault {
  const fault = (text: string): LineFault => ({ number, fault: text });
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (thrown) {
    return fault(`This is no JSON: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
  }
  if (!isJsonObject(value)) return fault('Expected an object with prompt and choices.');
  const { prompt, choices, answer = null } = value;
  if (typeof prompt !== 'string') return fault('prompt must be a text.');
  if (!Array.isArray(choices) || choices.length === 0 || choices.length > MAX_CHOICES)
    return fault(`choices must be a list of 1 to ${MAX_CHOICES} texts.`);
  const wrong = choices.findIndex((choice) => typeof choice !== 'string' || choice === '');
  if (wrong >= 0) return fault(`choices[${wrong}] must be a text that is not empty.`);
  const isIndex = Number.isInteger(answer) && Number(answer) >= 0 && Number(answer) < choices.length;
  if (answer !== null && !isIndex)
    return fault(
      `answer must be an index from 0 to ${choices.length - 1}, but is ${JSON.stringify(answer)}.`,
    );
  return { number, prompt, choices: choices as string[], answer: answer as number | null };
}
