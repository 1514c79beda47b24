import type { Trace } from '../../../origin/cli/load.ts';
import type { WireConstraint } from '../../../shared/generation.ts';
import { PRODUCT_SCHEMA } from '../../support/product-schema.ts';
import { median } from './statistics.ts';
import type { Job, Target, TextBoundaries } from './target.ts';

/** Measures the cost of a constraint or of text boundaries: waves with and without alternate. */

const text = (minLength: number) => ({ type: 'string', minLength });
const list = (items: object) => ({ type: 'array', items, minItems: 1000 });

/** Constraints that no text completes within the token limit, so that all streams have the same length. */
const ENDLESS: readonly WireConstraint[] = [
  list(PRODUCT_SCHEMA),
  list({ type: 'string', maxLength: 40 }),
  { type: 'object', properties: { story: text(100_000) }, required: ['story'] },
  list({ anyOf: [{ type: 'integer', minimum: 0, maximum: 5000 }, { enum: ['alpha', 'beta', 'gamma'] }] }),
].map((value) => ({ type: 'json_schema', value }));

/** Boundaries that no generated text meets. */
const BOUNDARIES: TextBoundaries = {
  tokenHealing: true,
  stopRegex: ['\\n§ [0-9]{3}\\n', '(?i:end of part) [0-9]+', '¤{2,9}', '[A-Z]{3}-[0-9]{5}-¤'],
  bannedPhrases: [
    ...Array.from({ length: 30 }, (_, i) => `the ¤ phrase number ${i}`),
    { regex: 'as an? [a-z]{3,20} model¤' },
    { regex: '[0-9]{4}-[0-9]{2}-[0-9]{2}¤' },
  ],
};

/** What is added to the jobs of every second wave. */
export const ADDITIONS: Readonly<Record<'constrained' | 'bounded', (number: number) => Partial<Job>>> = {
  constrained: (number) => ({ constraint: ENDLESS[number % ENDLESS.length]! }),
  bounded: () => ({ boundaries: BOUNDARIES }),
};

export interface ConstrainedResult {
  /** Decode tokens/s, the median of the waves. */
  readonly plain: number;
  readonly changed: number;
  /** Median over the waves of changed ÷ plain, each pair measured one after the other. */
  readonly share: number;
}

/**
 * Returns the sum of the streams' decode rates in tokens/s. Each stream is timed separately: incomplete
 * characters delay events, so the streams have no reliable common span.
 */
function decodeRate(traces: readonly Trace[]): number {
  return traces.reduce((sum, { tokens, events }) => {
    const ms = (events.at(-1) as number) - (events[0] as number);
    return sum + (1000 * (tokens - 1)) / ms;
  }, 0);
}

/**
 * @param pairs waves of each kind
 * @throws Error if a stream failed or ended early, because the figures would not be comparable
 */
export async function measureConstrained(
  target: Target,
  concurrency: number,
  pairs: number,
  job: (index: number) => Job,
  addition: (number: number) => Partial<Job>,
): Promise<ConstrainedResult> {
  const rateOf = async (wave: number, kind: 'plain' | 'changed'): Promise<number> => {
    const jobs = Array.from({ length: concurrency }, (_, number): Job => {
      const plain = job(wave * concurrency + number);
      return kind === 'plain' ? plain : { ...plain, ...addition(number) };
    });
    const traces = await Promise.all(jobs.map((each) => target.run(each)));
    const bad = traces.find(({ tokens, error }) => error !== null || tokens !== job(0).maxTokens);
    if (bad) throw new Error(`${target.name}, ${kind}: ${bad.status}, ${bad.error}, ${bad.tokens} tokens`);
    return decodeRate(traces);
  };
  const plain: number[] = [];
  const changed: number[] = [];
  // The first pair warms up: it compiles grammars and computes masks. The order alternates between pairs.
  for (let wave = 0; wave <= pairs; wave += 1) {
    for (const kind of wave % 2 === 0 ? (['plain', 'changed'] as const) : (['changed', 'plain'] as const)) {
      const rate = await rateOf(wave, kind);
      if (wave > 0) (kind === 'plain' ? plain : changed).push(rate);
    }
  }
  return {
    plain: median(plain),
    changed: median(changed),
    share: median(plain.map((rate, wave) => (changed[wave] as number) / rate)),
  };
}
