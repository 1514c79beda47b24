import { compileProgram } from '../../../../origin/grammar/compile.ts';
import { GrammarRuntime } from '../../../../origin/grammar/runtime/grammar-runtime.ts';
import { GrammarVocabulary } from '../../../../origin/grammar/runtime/grammar-vocabulary.ts';
import type { WireConstraint } from '../../../../shared/generation.ts';
import { largeVocabulary } from '../../../support/grammar/vocabularies.ts';
import { PRODUCT_SCHEMA } from '../../../support/product-schema.ts';
import { mulberry32 } from '../../../support/random.ts';
import { quantile } from '../statistics.ts';

/** Times of compilation and masks at 152,000 tokens: `npx node test/tools/bench/grammar/grammar.ts`. */

const NESTED = nestedSchema(7);
const CASES: Readonly<Record<string, WireConstraint>> = {
  arithmetic: {
    type: 'gbnf',
    value: `root ::= expr
expr ::= term (('+' | '-') term)*
term ::= factor (('*' | '/') factor)*
factor ::= [0-9]+ | '(' expr ')'`,
  },
  product: {
    type: 'json_schema',
    value: PRODUCT_SCHEMA,
  },
  [`nested schema of ${JSON.stringify(NESTED).length} bytes`]: { type: 'json_schema', value: NESTED },
  'strings of bounded length': {
    type: 'json_schema',
    value: { type: 'array', items: { type: 'string', maxLength: 200 } },
  },
  'any JSON object': { type: 'json_object' },
  'e-mail pattern': { type: 'regex', value: '[a-z0-9._-]+@([a-z0-9-]+\\.)+[a-z]{2,}' },
  'markup with recursion': {
    type: 'gbnf',
    value: 'root ::= text\ntext ::= [^<>]* ("<" tag ">" text "</" tag ">" [^<>]*)*\ntag ::= [a-z]+',
  },
};

function nestedSchema(depth: number): object {
  const leaf = { type: 'string', description: 'A leaf of the tree, described at some length', minLength: 1 };
  const properties: Record<string, unknown> = {};
  for (let i = 0; i < 4; i++) {
    properties[`field_${depth}_${i}`] =
      i === 0 && depth > 0
        ? nestedSchema(depth - 1)
        : i === 1
          ? { type: 'array', items: leaf }
          : { ...leaf, maxLength: 40 + i };
  }
  properties.kind = { enum: ['alpha', 'beta', 'gamma'] };
  properties.count = { type: 'integer', minimum: 0, maximum: 1000 * (depth + 1) };
  return {
    type: 'object',
    properties,
    required: Object.keys(properties).slice(0, 4),
    additionalProperties: false,
  };
}

/** Returns a random allowed token, or null. Allocates nothing, as collections would distort times. */
function anyAllowed(mask: Uint32Array, random: () => number): number | null {
  let count = 0;
  for (let w = 0; w < mask.length; w++) for (let bits = mask[w]!; bits !== 0; bits &= bits - 1) count++;
  let skip = Math.floor(random() * count);
  for (let w = 0; w < mask.length; w++) {
    for (let bits = mask[w]!; bits !== 0; bits &= bits - 1) {
      if (skip-- === 0) return 32 * w + 31 - Math.clz32(bits & -bits);
    }
  }
  return null;
}

/** Formats a quantile of times. */
const at = (times: readonly number[], q: number): string => quantile(times, q).toFixed(3);

const tokens = largeVocabulary();
let start = performance.now();
const vocabulary = new GrammarVocabulary(tokens);
console.log(`vocabulary ${tokens.vocabularySize}: ${(performance.now() - start).toFixed(0)} ms`);
for (const [name, wire] of Object.entries(CASES)) {
  start = performance.now();
  const program = compileProgram(wire);
  const compileMs = performance.now() - start;
  const runtime = new GrammarRuntime(program, vocabulary);
  const random = mulberry32(5);
  const times: number[] = [];
  const firstPass: number[] = [];
  for (let sequence = 0; sequence < 20; sequence++) {
    const constraint = runtime.start();
    for (let step = 0; step < 60; step++) {
      start = performance.now();
      const mask = constraint.mask();
      const elapsed = performance.now() - start;
      times.push(elapsed);
      if (sequence === 0) firstPass.push(elapsed);
      const token = anyAllowed(mask, random);
      if (token === null) break;
      constraint.accept(token);
    }
  }
  console.log(
    `${name}: compile ${compileMs.toFixed(1)} ms, ${program.ruleOf.length} states; masks p50 ${at(times, 0.5)}, ` +
      `p99 ${at(times, 0.99)}, max ${at(times, 1)} ms; first sequence p50 ${at(firstPass, 0.5)}, max ${at(firstPass, 1)} ms`,
  );
}
