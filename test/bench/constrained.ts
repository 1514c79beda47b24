import type { WireConstraint } from '../../shared/generation.ts';
import { measureLoad } from './load.ts';
import { median } from './statistics.ts';
import type { Job, Target } from './target.ts';

/** What a constraint costs: the same load with and without one, wave by wave in turn. */

const text = (minLength: number) => ({ type: 'string', minLength });
const list = (items: object) => ({ type: 'array', items, minItems: 1000 });

/** None of them can be completed within a bench's tokens, so that all streams run to their end. */
const ENDLESS: readonly WireConstraint[] = [
  list({
    type: 'object',
    properties: {
      name: { type: 'string' },
      price: { type: 'number', minimum: 0 },
      in_stock: { type: 'boolean' },
      tags: { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: 5 },
    },
    required: ['name', 'price'],
  }),
  list({ type: 'string', maxLength: 40 }),
  { type: 'object', properties: { story: text(100_000) }, required: ['story'] },
  list({ anyOf: [{ type: 'integer', minimum: 0, maximum: 5000 }, { enum: ['alpha', 'beta', 'gamma'] }] }),
].map((value) => ({ type: 'json_schema', value }));

export interface ConstrainedResult {
  readonly concurrency: number;
  /** Decode tokens/s, the median of the waves. */
  readonly plain: number;
  readonly constrained: number;
  /** Median over the waves of constrained ÷ plain, each pair measured one after the other. */
  readonly share: number;
}

/** @throws Error when a stream failed or ended early: the figures would not be comparable */
export async function measureConstrained(
  target: Target,
  concurrency: number,
  waves: number,
  job: (index: number) => Job,
): Promise<ConstrainedResult> {
  const constrained = (index: number): Job => ({
    ...job(index),
    constraint: ENDLESS[index % ENDLESS.length] as WireConstraint,
  });
  const plainRates: number[] = [];
  const constrainedRates: number[] = [];
  // The first pair warms up: grammars are compiled, masks made.
  for (let wave = 0; wave <= waves; wave += 1) {
    const rate = async (of: (index: number) => Job): Promise<number> => {
      const shifted = (index: number) => of(wave * concurrency + index);
      const result = await measureLoad(target, concurrency, 1, shifted, () => undefined);
      const wanted = concurrency * job(0).maxTokens;
      if (result.errors > 0 || result.tokens !== wanted) {
        throw new Error(
          `${target.name}: ${result.errors} errors, ${result.tokens} of ${wanted} tokens with constraints`,
        );
      }
      return result.decodeTokensPerSecond;
    };
    const pair = [await rate(job), await rate(constrained)] as const;
    if (wave === 0) continue;
    plainRates.push(pair[0]);
    constrainedRates.push(pair[1]);
  }
  return {
    concurrency,
    plain: median(plainRates),
    constrained: median(constrainedRates),
    share: median(plainRates.map((plain, wave) => (constrainedRates[wave] as number) / plain)),
  };
}
