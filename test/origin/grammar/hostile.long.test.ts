import { afterAll, describe, expect, it } from 'vitest';
import { CompilePool } from '../../../origin/compiler/compile-pool.ts';
import type { Program } from '../../../origin/grammar/program/program.ts';
import { GrammarRuntime } from '../../../origin/grammar/runtime/grammar-runtime.ts';
import { GrammarVocabulary } from '../../../origin/grammar/runtime/grammar-vocabulary.ts';
import { ApiError } from '../../../shared/errors.ts';
import type { WireConstraint } from '../../../shared/generation.ts';
import { finished } from '../../support/grammar/finished.ts';
import { HOSTILE_CASES } from '../../support/grammar/hostile-cases.ts';
import { allowedTokens } from '../../support/grammar/random-walk.ts';
import { smallVocabulary } from '../../support/grammar/vocabularies.ts';
import { randomFrom } from '../../support/random.ts';

const vocabulary = new GrammarVocabulary(smallVocabulary());
/** Set TEST_COMPILE_LIMIT_MS=2000 to test with the limit of production. */
const timeLimitMs = Number(process.env.TEST_COMPILE_LIMIT_MS ?? 200);
/** Practically no limits: on a busy machine, a process may get a twentieth of the CPU time. */
const AMPLE = { maxMs: 110_000, maxWaitMs: 110_000 };
const compiler = new CompilePool({ timeLimitMs, ...AMPLE });
afterAll(() => compiler.close());

it('has at least forty hostile inputs', () => {
  expect(HOSTILE_CASES.length).toBeGreaterThanOrEqual(40);
});

describe('a hostile input is compiled or refused with 400', () => {
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

/** Large or nested constraints that are cheap to compile. */
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

it.each(Object.entries(HARMLESS))('compiles %s', async (name, wire) => {
  const patient = new CompilePool({ timeLimitMs: 20_000, processes: 1, ...AMPLE });
  try {
    expect(generate(await patient.compile(JSON.stringify(wire), name))).toBe(true);
  } finally {
    await patient.close();
  }
});

/** Generates up to 40 random tokens. True if the constraint works or reports that it needs too much work. */
function generate(program: Program): boolean {
  const constraint = new GrammarRuntime(program, vocabulary).start();
  const random = randomFrom(1);
  try {
    for (let step = 0; step < 40; step++) {
      const allowed = allowedTokens(finished(() => constraint.mask()));
      if (allowed.length === 0) return constraint.accepting;
      constraint.accept(allowed[Math.floor(random() * allowed.length)]!);
    }
    return true;
  } catch (error) {
    return error instanceof ApiError && error.code === 'invalid_grammar';
  }
}
