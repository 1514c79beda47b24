import { afterAll, describe, expect, it } from 'vitest';
import { CompilePool } from '../../../origin/compiler/compile-pool.ts';
import { GrammarCache } from '../../../origin/compiler/grammar-cache.ts';
import { compileProgram } from '../../../origin/grammar/compile.ts';
import type { Program } from '../../../origin/grammar/program/program.ts';
import { GrammarRuntime } from '../../../origin/grammar/runtime/grammar-runtime.ts';
import { GrammarVocabulary } from '../../../origin/grammar/runtime/grammar-vocabulary.ts';
import type { WireConstraint } from '../../../shared/generation.ts';
import { smallVocabulary } from '../../support/grammar/vocabularies.ts';

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
const HANGING = '{"defect":"hang"}';
const frail = new URL('../../support/grammar/frail-compile-process.ts', import.meta.url);
/** Practically no limit, because quick jobs run at low priority on a busy machine. */
const AMPLE = { timeLimitMs: 110_000, maxMs: 110_000, maxWaitMs: 110_000 };

describe('the compile pool', () => {
  const compiler = new CompilePool({ processes: 1, ...AMPLE });
  afterAll(() => compiler.close());

  it('returns the same tables as a compilation in this process', async () => {
    expect(await compiler.compile(JSON.stringify(PRODUCT), 'a')).toStrictEqual(compileProgram(PRODUCT));
  });

  it('passes on errors with code, message and field', async () => {
    const wire: WireConstraint = { type: 'gbnf', value: 'root ::= (' };
    await expect(compiler.compile(JSON.stringify(wire), 'a')).rejects.toMatchObject({
      code: 'invalid_grammar',
      param: 'grammar',
      message: expect.stringContaining('line 1'),
    });
  });

  it('stops a compilation that exceeds its time limit', async () => {
    // No machine compiles this in 100 ms.
    const hurried = new CompilePool({ processes: 1, ...AMPLE, timeLimitMs: 100 });
    const late = { code: 'invalid_grammar', status: 400 };
    await expect(hurried.compile(JSON.stringify(SLOW), 'a')).rejects.toMatchObject(late);
    await hurried.close();
  });

  it('rejects only the tenant that exceeds its waiting jobs', async () => {
    const crowded = new CompilePool({ processes: 1, maxWaiting: 1, ...AMPLE });
    const source = JSON.stringify(PRODUCT);
    const outcomes = await Promise.allSettled(['a', 'a', 'a', 'b'].map((t) => crowded.compile(source, t)));
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
    expect(outcomes[2]).toMatchObject({ reason: { code: 'server_is_overloaded', status: 503 } });
    await crowded.close();
  });

  it('rejects a job that has waited too long', async () => {
    const busy = new CompilePool({ processes: 1, ...AMPLE, maxWaitMs: 50, timeLimitMs: 400, entry: frail });
    const slow = busy.compile(HANGING, 'a');
    await expect(busy.compile(JSON.stringify(PRODUCT), 'b')).rejects.toMatchObject({ status: 503 });
    await expect(slow).rejects.toMatchObject({ status: 400 });
    await busy.close();
  });

  it('lets tenants take turns', async () => {
    const fair = new CompilePool({ processes: 1, ...AMPLE });
    const order: string[] = [];
    const compile = (tenant: string) =>
      fair.compile(JSON.stringify(PRODUCT), tenant).then(() => order.push(tenant));
    await Promise.all([...Array.from({ length: 6 }, () => compile('many')), compile('few'), compile('one')]);
    expect(order.slice(0, 4).sort()).toEqual(['few', 'many', 'many', 'one']);
    await fair.close();
  });

  it('keeps a process free for other tenants while one compiles a slow grammar', async () => {
    const two = new CompilePool({ processes: 2, entry: frail, ...AMPLE });
    let ended = 0;
    const slow = [1, 2].map(() => two.compile(HANGING, 'slow').catch(() => ended++));
    await two.compile(JSON.stringify(PRODUCT), 'quick');
    expect(ended).toBe(0);
    await two.close();
    await Promise.all(slow);
  });

  it('fails running and later jobs after close', async () => {
    const closing = new CompilePool({ processes: 1, ...AMPLE });
    const pending = [
      closing.compile(JSON.stringify(PRODUCT), 'a'),
      closing.compile(JSON.stringify(PRODUCT), 'b'),
    ];
    const outcomes = Promise.allSettled(pending);
    await closing.close();
    expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await expect(closing.compile(JSON.stringify(PRODUCT), 'a')).rejects.toMatchObject({ status: 503 });
  });
});

describe('the cache of compiled grammars', () => {
  const vocabulary = new GrammarVocabulary(smallVocabulary());
  const make = (program: Program) => new GrammarRuntime(program, vocabulary);
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
  const choice = (text: string) => JSON.stringify({ type: 'choice', value: [text] });

  it('compiles equal constraints once, also concurrently', async () => {
    const { calls, compile } = counting();
    const cache = new GrammarCache(make, compile);
    const [a, b] = await Promise.all([cache.get(choice('a'), 'a'), cache.get(choice('a'), 'a')]);
    expect(await cache.get(choice('a'), 'a')).toBe(a);
    expect(b).toBe(a);
    expect(await cache.get(choice('b'), 'a')).not.toBe(a);
    expect(calls).toHaveLength(2);
  });

  it('does not let a tenant wait for another tenant that compiles the same constraint', async () => {
    const never = new Promise<ReturnType<typeof compileProgram>>(() => {});
    const { compile } = counting();
    const cache = new GrammarCache(make, (wire, tenant) => (tenant === 'stuck' ? never : compile(wire)));
    void cache.get(choice('a'), 'stuck');
    const [b, c] = await Promise.all(['b', 'c'].map((tenant) => cache.get(choice('a'), tenant)));
    expect(c).toBe(b);
  });

  it('distinguishes schemas that differ in the order of properties', async () => {
    const { calls, compile } = counting();
    const cache = new GrammarCache(make, compile);
    const properties = [
      { a: {}, b: {} },
      { b: {}, a: {} },
    ];
    for (const value of properties)
      await cache.get(
        JSON.stringify({ type: 'json_schema', value: { type: 'object', properties: value } }),
        'a',
      );
    expect(calls).toHaveLength(2);
  });

  it('evicts the least recently used grammar by number and by memory', async () => {
    for (const bounds of [{ maxGrammars: 2 }, { maxBytes: 1 }]) {
      const { calls, compile } = counting();
      const cache = new GrammarCache(make, compile, bounds);
      for (const text of ['a', 'b', 'a', 'c', 'a', 'b']) await cache.get(choice(text), 'a');
      expect(cache.size).toBeLessThanOrEqual(2);
      expect(calls).toHaveLength('maxBytes' in bounds ? 6 : 4);
    }
  });

  it('counts the memory of program tables', async () => {
    const cache = new GrammarCache(make, counting().compile, { maxBytes: 2 ** 20 });
    for (const letter of 'abc') await cache.get(choice(letter.repeat(40_000)), 'a');
    expect(cache.size).toBe(1);
  });

  it('does not cache errors', async () => {
    const { calls, compile } = counting();
    const cache = new GrammarCache(make, compile);
    const bad = JSON.stringify({ type: 'regex', value: '(' });
    await expect(cache.get(bad, 'a')).rejects.toThrow(/not closed/);
    await expect(cache.get(bad, 'a')).rejects.toThrow(/not closed/);
    expect(calls).toHaveLength(2);
    expect(cache.size).toBe(0);
  });
});
