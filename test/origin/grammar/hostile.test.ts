import { afterAll, describe, expect, it } from 'vitest';
import { ProgramCompiler } from '../../../origin/grammar/process/program-compiler.ts';
import type { Program } from '../../../origin/grammar/program/program.ts';
import { GrammarRuntime } from '../../../origin/grammar/runtime/grammar-runtime.ts';
import { GrammarVocabulary } from '../../../origin/grammar/runtime/grammar-vocabulary.ts';
import { ApiError } from '../../../shared/errors.ts';
import type { WireConstraint } from '../../../shared/generation.ts';
import { HOSTILE_CASES } from '../../support/grammar/hostile-cases.ts';
import { allowedTokens } from '../../support/grammar/random-walk.ts';
import { smallVocabulary } from '../../support/grammar/vocabularies.ts';
import { randomFrom } from '../../support/random.ts';

const vocabulary = new GrammarVocabulary(smallVocabulary());
/** By hand: CONTINUO_COMPILE_LIMIT_MS=2000, the product's own limit. */
const timeLimitMs = Number(process.env.CONTINUO_COMPILE_LIMIT_MS ?? 200);
const compiler = new ProgramCompiler({ timeLimitMs, patienceMs: 60_000 });
afterAll(() => compiler.close());

it('has at least forty hostile inputs', () => {
  expect(HOSTILE_CASES.length).toBeGreaterThanOrEqual(40);
});

describe('a hostile input is compiled or refused with a clear 400', () => {
  it.concurrent.each(HOSTILE_CASES)('$name', async ({ name, wire }) => {
    const outcome: Program | ApiError = await compiler
      .compile(JSON.stringify(wire()), name)
      .catch((error) => error);
    if (outcome instanceof Error) {
      expect(outcome).toBeInstanceOf(ApiError);
      expect((outcome as ApiError).status).toBe(400);
      expect(outcome.message).not.toBe('');
      return;
    }
    expect(generate(outcome)).toBe(true);
  });
});

/** Legal, however long or tangled: what they say can be read in one go. */
const HARMLESS: Readonly<Record<string, WireConstraint>> = {
  'a schema whose parts share their parts, forty deep': {
    type: 'json_schema',
    value: {
      $ref: '#/$defs/s0',
      $defs: Object.fromEntries(
        Array.from({ length: 41 }, (_, i) => {
          const next = { $ref: `#/$defs/s${i + 1}` };
          return [`s${i}`, i === 40 ? { type: 'integer' } : { allOf: [next, next] }];
        }),
      ),
    },
  },
  'a Lark grammar under 200,000 lines of comments': {
    type: 'lark',
    value: `${'#\n'.repeat(200_000)}start: "a"`,
  },
};

it.each(Object.entries(HARMLESS))('is compiled: %s', async (name, wire) => {
  const patient = new ProgramCompiler({ timeLimitMs: 20_000, processes: 1, patienceMs: 60_000 });
  try {
    expect(generate(await patient.compile(JSON.stringify(wire), name))).toBe(true);
  } finally {
    await patient.close();
  }
});

/** Some steps at random; a grammar that is too much work says so in an ApiError of its own. */
function generate(program: Program): boolean {
  const constraint = new GrammarRuntime(program, vocabulary).start();
  const random = randomFrom(1);
  try {
    for (let step = 0; step < 40; step++) {
      const allowed = allowedTokens(constraint.mask());
      if (allowed.length === 0) return constraint.accepting;
      constraint.accept(allowed[Math.floor(random() * allowed.length)]!);
    }
    return true;
  } catch (error) {
    return error instanceof ApiError && error.code === 'invalid_grammar';
  }
}
