import { afterAll, describe, expect, it } from 'vitest';
import { compileProgram } from '../../../origin/grammar/compile.ts';
import { GrammarVocabulary } from '../../../origin/grammar/runtime/grammar-vocabulary.ts';
import { GrammarCache } from '../../../origin/grammar/thread/grammar-cache.ts';
import { ProgramCompiler } from '../../../origin/grammar/thread/program-compiler.ts';
import type { WireConstraint } from '../../../shared/generation.ts';
import { smallVocabulary } from '../../grammar/vocabularies.ts';

const PRODUCT: WireConstraint = {
  type: 'json_schema',
  value: {
    type: 'object',
    properties: { name: { type: 'string' }, price: { type: 'number', minimum: 0 } },
    required: ['name'],
  },
};
/** An automaton of hundreds of thousands of states. */
const SLOW: WireConstraint = { type: 'regex', value: '(^|a)((b{60}){50}){50}($|c)' };

describe('the compile thread', () => {
  const compiler = new ProgramCompiler({ threads: 1, timeLimitMs: 200 });
  afterAll(() => compiler.close());

  it('makes the same tables as a compilation in this thread', async () => {
    expect(await compiler.compile(JSON.stringify(PRODUCT))).toEqual(compileProgram(PRODUCT));
  });

  it('hands errors on with code, message and field', async () => {
    const wire: WireConstraint = { type: 'gbnf', value: 'root ::= (' };
    await expect(compiler.compile(JSON.stringify(wire))).rejects.toMatchObject({
      code: 'invalid_grammar',
      param: 'grammar',
      message: expect.stringContaining('line 1'),
    });
  });

  it('ends a compilation at its time limit and goes on with the next one in a fresh thread', async () => {
    const slow = compiler.compile(JSON.stringify(SLOW));
    const next = compiler.compile(JSON.stringify(PRODUCT));
    await expect(slow).rejects.toMatchObject({ code: 'invalid_grammar', status: 400 });
    expect((await next).ruleOf.length).toBeGreaterThan(0);
  });

  it('turns away what would wait behind too many others', async () => {
    const crowded = new ProgramCompiler({ threads: 1, maxWaiting: 1 });
    const source = JSON.stringify(PRODUCT);
    const outcomes = await Promise.allSettled([1, 2, 3].map(() => crowded.compile(source)));
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected']);
    expect(outcomes[2]).toMatchObject({ reason: { code: 'server_is_overloaded', status: 503 } });
    await crowded.close();
  });

  it('fails what is under way and what comes later once it is closed', async () => {
    const closing = new ProgramCompiler({ threads: 1 });
    const pending = [closing.compile(JSON.stringify(PRODUCT)), closing.compile(JSON.stringify(PRODUCT))];
    const outcomes = Promise.allSettled(pending);
    await closing.close();
    expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await expect(closing.compile(JSON.stringify(PRODUCT))).rejects.toMatchObject({ status: 503 });
  });
});

describe('the cache of compiled grammars', () => {
  const vocabulary = new GrammarVocabulary(smallVocabulary());
  const counting = (): {
    calls: string[];
    compile: (wire: string) => Promise<ReturnType<typeof compileProgram>>;
  } => {
    const calls: string[] = [];
    return {
      calls,
      compile: async (wire) => {
        calls.push(wire);
        return compileProgram(JSON.parse(wire) as WireConstraint);
      },
    };
  };
  const choice = (text: string): WireConstraint => ({ type: 'choice', value: [text] });

  it('compiles equal constraints once, also at the same time', async () => {
    const { calls, compile } = counting();
    const cache = new GrammarCache(vocabulary, compile);
    const [a, b] = await Promise.all([cache.get(choice('a')), cache.get(choice('a'))]);
    expect(await cache.get(choice('a'))).toBe(a);
    expect(b).toBe(a);
    expect(await cache.get(choice('b'))).not.toBe(a);
    expect(calls).toHaveLength(2);
  });

  it('tells apart schemas that differ in the order of properties', async () => {
    const { calls, compile } = counting();
    const cache = new GrammarCache(vocabulary, compile);
    const properties = [
      { a: {}, b: {} },
      { b: {}, a: {} },
    ];
    for (const value of properties)
      await cache.get({ type: 'json_schema', value: { type: 'object', properties: value } });
    expect(calls).toHaveLength(2);
  });

  it('drops the least recently used beyond its bounds, by number and by memory', async () => {
    for (const bounds of [{ maxGrammars: 2 }, { maxBytes: 1 }]) {
      const { calls, compile } = counting();
      const cache = new GrammarCache(vocabulary, compile, bounds);
      for (const text of ['a', 'b', 'a', 'c', 'a', 'b']) await cache.get(choice(text));
      expect(cache.size).toBeLessThanOrEqual(2);
      expect(calls).toHaveLength('maxBytes' in bounds ? 6 : 4);
    }
  });

  it('does not keep failures', async () => {
    const { calls, compile } = counting();
    const cache = new GrammarCache(vocabulary, compile);
    const bad: WireConstraint = { type: 'regex', value: '(' };
    await expect(cache.get(bad)).rejects.toThrow(/not closed/);
    await expect(cache.get(bad)).rejects.toThrow(/not closed/);
    expect(calls).toHaveLength(2);
    expect(cache.size).toBe(0);
  });
});
