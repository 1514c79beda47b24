import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { WorkBudget } from '../../../origin/grammar/automaton/work-budget.ts';
import { jsonSchemaGrammar } from '../../../origin/grammar/json-schema/json-schema.ts';
import { GrammarVocabulary } from '../../../origin/grammar/runtime/grammar-vocabulary.ts';
import { textsOf } from '../../../origin/model/config/model-directory.ts';
import { tokenBytesOf } from '../../../origin/tokenizer/read-token-bytes.ts';
import { bytesOf, type TokenBytes } from '../../../origin/tokenizer/token-bytes.ts';
import { readTokenizerFiles } from '../../../origin/tokenizer/tokenizer-files.ts';
import { compileConstraint } from '../../support/grammar/compile-constraint.ts';
import { GBNF_CASES } from '../../support/grammar/gbnf-cases.ts';
import type { Bnf } from '../../support/grammar/oracle/bnf.ts';
import { EarleyChart } from '../../support/grammar/oracle/earley.ts';
import { bnfOfGrammar } from '../../support/grammar/oracle/expression-to-bnf.ts';
import { bnfOfGbnf } from '../../support/grammar/oracle/gbnf-to-bnf.ts';
import { allowedTokens } from '../../support/grammar/random-walk.ts';
import { SCHEMA_CASES } from '../../support/grammar/schema-cases.ts';
import { largeVocabulary } from '../../support/grammar/vocabularies.ts';
import { randomFrom } from '../../support/random.ts';

const MODEL = 'origin/models/continuo-mini';
const SAMPLE = 300;

/** Walks at random. Each step compares a sample with the oracle; half are allowed tokens. */
function faults(
  wire: Parameters<typeof compileConstraint>[0],
  bnf: Bnf,
  tokens: TokenBytes,
  vocabulary: GrammarVocabulary,
): string[] {
  const random = randomFrom(13);
  const constraint = compileConstraint(wire, vocabulary).start();
  const chart = new EarleyChart(bnf);
  const found: string[] = [];
  for (let step = 0; step < 8; step++) {
    const allowed = allowedTokens(constraint.mask());
    const isAllowed = new Set(allowed);
    if (constraint.accepting !== chart.accepting) found.push(`end at step ${step}`);
    for (let i = 0; i < SAMPLE; i++) {
      const pool = i % 2 === 0 && allowed.length > 0 ? allowed : null;
      const id = pool
        ? pool[Math.floor(random() * pool.length)]!
        : Math.floor(random() * tokens.vocabularySize);
      const possible = canFollow(chart, tokens, id);
      if (possible !== isAllowed.has(id)) found.push(`token ${id} at step ${step}: ${isAllowed.has(id)}`);
    }
    if (allowed.length === 0) break;
    const next = allowed[Math.floor(random() * allowed.length)]!;
    constraint.accept(next);
    for (const byte of bytesOf(tokens, next)) chart.push(byte);
  }
  return found;
}

function canFollow(chart: EarleyChart, tokens: TokenBytes, id: number): boolean {
  const bytes = bytesOf(tokens, id);
  if (tokens.special[id] === 1 || bytes.length === 0) return false;
  const before = chart.length;
  const possible = bytes.every((byte) => chart.push(byte));
  while (chart.length > before) chart.pop();
  return possible;
}

const GRAMMARS = [
  'arithmetic with groups',
  'JSON',
  'markup',
  'statements',
  'anything then a mark',
  'long count',
];
const SCHEMAS = [
  'product',
  'person',
  'chain of thought',
  'long maxLength',
  'whole pattern',
  'free additional properties',
  'event',
];

describe.each([
  ['a synthetic vocabulary of 152,000 tokens', () => largeVocabulary()],
  ['the built-in model’s vocabulary', () => tokenBytesOf(readTokenizerFiles(textsOf(MODEL)).tokenizer, 0)],
] as const)('%s', (name, load) => {
  const isMissing = name.startsWith('the built-in') && !existsSync(`${MODEL}/tokenizer.json`);
  const tokens = isMissing ? largeVocabulary(300) : load();
  const vocabulary = new GrammarVocabulary(tokens);

  it.skipIf(isMissing).each(GRAMMARS)('agrees with the oracle on the grammar: %s', (title) => {
    const source = GBNF_CASES[title]!;
    expect(faults({ type: 'gbnf', value: source }, bnfOfGbnf(source), tokens, vocabulary)).toEqual([]);
  });

  it.skipIf(isMissing).each(SCHEMAS)('agrees with the oracle on the schema: %s', (title) => {
    const { schema } = SCHEMA_CASES.find((candidate) => candidate.name === title)!;
    const bnf = bnfOfGrammar(jsonSchemaGrammar(schema, new WorkBudget(1e9)));
    expect(faults({ type: 'json_schema', value: schema }, bnf, tokens, vocabulary)).toEqual([]);
  });

  it.skipIf(isMissing)('keeps arrays of different strings within the work of a token', () => {
    const value = { type: 'array', items: { type: 'string' }, uniqueItems: true };
    const constraint = compileConstraint({ type: 'json_schema', value }, vocabulary).start();
    for (const byte of new TextEncoder().encode('["thin","er","thinon","日本","日曜","th"]')) {
      expect(constraint.mask().some((word) => word !== 0)).toBe(true);
      constraint.acceptBytes(Uint8Array.of(byte));
    }
    expect(constraint.accepting).toBe(true);
  });
});
