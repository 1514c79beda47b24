import { describe, expect, it } from 'vitest';
import type { WorkBudget } from '../../../origin/grammar/automaton/work-budget.ts';
import { compileProgram } from '../../../origin/grammar/compile.ts';
import type { Constraint } from '../../../origin/grammar/runtime/constraint.ts';
import { StepBudget, UnfinishedWork } from '../../../origin/grammar/runtime/constraint.ts';
import { type GrammarLimits, GrammarRuntime } from '../../../origin/grammar/runtime/grammar-runtime.ts';
import { GrammarVocabulary } from '../../../origin/grammar/runtime/grammar-vocabulary.ts';
import { StateTable } from '../../../origin/grammar/runtime/state-table.ts';
import { TableHandle, TableMemory, type TableUser } from '../../../origin/grammar/runtime/table-memory.ts';
import type { WireConstraint } from '../../../shared/generation.ts';
import { finished } from '../../support/grammar/finished.ts';
import { allowedTokens } from '../../support/grammar/random-walk.ts';
import { smallVocabulary } from '../../support/grammar/vocabularies.ts';
import { randomFrom } from '../../support/random.ts';

const tokens = smallVocabulary();
/** With the walks over the tokens, less than a first mask costs, and more than one step of the parser. */
const FEW_UNITS = 3000;

const CONSTRAINTS: Readonly<Record<string, WireConstraint>> = {
  'a schema': {
    type: 'json_schema',
    value: {
      type: 'object',
      properties: {
        name: { type: 'string', minLength: 2, maxLength: 40 },
        tags: { type: 'array', items: { enum: ['alpha', 'beta', 'gamma', 'delta'] }, uniqueItems: true },
        when: { type: 'string', format: 'date-time' },
        inner: { anyOf: [{ type: 'number', minimum: -3.5 }, { type: 'array' }, { type: 'object' }] },
      },
      required: ['name', 'tags'],
    },
    openObjects: true,
    anyKeyOrder: true,
  },
  'an ambiguous grammar': { type: 'gbnf', value: 'root ::= "a" root "b" | root root | "a" | "b"' },
};

interface Text {
  readonly ids: readonly number[];
  readonly masks: readonly (readonly number[])[];
  /** The code of its error; null if it has none. */
  readonly error: unknown;
  readonly interruptions: number;
}

/** More than a text here needs. */
const MAX_INTERRUPTIONS = 20_000;

/** Follows a random text, and goes on with what is unfinished. */
function follow(constraint: Constraint, seed: number, length = 12): Text {
  const random = randomFrom(seed);
  const ids: number[] = [];
  const masks: number[][] = [];
  let interruptions = 0;
  const interrupt = (): void => {
    if (++interruptions > MAX_INTERRUPTIONS) throw new Error('The work is never finished');
  };
  try {
    for (let step = 0; step < length; step++) {
      const allowed = allowedTokens(finished(() => constraint.mask(), interrupt));
      masks.push(allowed);
      if (allowed.length === 0) break;
      const id = allowed[Math.floor(random() * allowed.length)]!;
      constraint.accept(id);
      ids.push(id);
    }
  } catch (error) {
    return { ids, masks, error: (error as { code?: unknown }).code, interruptions };
  }
  return { ids, masks, error: null, interruptions };
}

const resultOf = ({ ids, masks, error }: Text) => ({ ids, masks, error });

describe('an operation that exceeds the work of a call', () => {
  it.each(Object.entries(CONSTRAINTS))(
    'goes on in later calls, so that %s gives the same text with cold, warm and ample limits',
    (name, wire) => {
      const program = compileProgram(wire);
      // A call has to have room for one step of the parser, which grows with an ambiguous text.
      const units = name === 'a schema' ? FEW_UNITS : 20_000;
      const start = (unitsPerCall?: number) =>
        new GrammarRuntime(program, new GrammarVocabulary(tokens), { unitsPerCall });
      const reused = start(units);
      for (const seed of [1, 2, 3]) {
        const ample = follow(start().start(), seed);
        const cold = follow(start(units).start(), seed);
        expect(cold.interruptions).toBeGreaterThan(0);
        expect(ample.interruptions).toBe(0);
        expect(ample.error).toBeNull();
        expect(resultOf(cold)).toEqual(resultOf(ample));
        follow(reused.start(), seed);
        const warm = follow(reused.start(), seed);
        expect(warm.interruptions).toBeLessThan(cold.interruptions);
        expect(resultOf(warm)).toEqual(resultOf(ample));
      }
    },
  );

  it('keeps the work of a call while other sequences of the grammar replace its table', () => {
    const program = compileProgram(CONSTRAINTS['a schema']!);
    const limits = { states: 10, unitsPerCall: FEW_UNITS };
    const shared = new GrammarRuntime(program, new GrammarVocabulary(tokens), limits);
    const other = shared.start();
    const constraint = shared.start();
    let mask: Uint32Array | null = null;
    for (let call = 0; call < 2000 && mask === null; call++) {
      for (const one of [other, constraint]) {
        try {
          const made = one.mask();
          if (one === constraint) mask = made;
        } catch (error) {
          expect(error).toBeInstanceOf(UnfinishedWork);
        }
      }
    }
    const alone = new GrammarRuntime(program, new GrammarVocabulary(tokens)).start();
    expect(allowedTokens(mask!)).toEqual(allowedTokens(alone.mask()));
  });

  it('copies any number of live states to another table, in as many calls as that takes', () => {
    const program = compileProgram({ type: 'gbnf', value: 'root ::= "(" root? ")" | "[" root? "]"' });
    const open = '([[('.repeat(500);
    const masksAfter = (limits: GrammarLimits) => {
      const constraint = new GrammarRuntime(program, new GrammarVocabulary(tokens), limits).start();
      constraint.acceptBytes(Buffer.from(open));
      let interruptions = 0;
      const mask = allowedTokens(
        finished(
          () => constraint.mask(),
          () => interruptions++,
        ),
      );
      return { mask, interruptions };
    };
    const { mask, interruptions } = masksAfter({ states: 1000, unitsPerCall: FEW_UNITS });
    expect(mask).toEqual(masksAfter({}).mask);
    expect(interruptions).toBeGreaterThan(20);
  });

  it.each([12, 20, 28])(
    'fails at the same token with every cache if it alone needs more memory than %d KiB',
    (kib) => {
      const program = compileProgram(CONSTRAINTS['an ambiguous grammar']!);
      const limits = { operationBytes: kib * 1024, unitsPerCall: 20_000 };
      const start = () => new GrammarRuntime(program, new GrammarVocabulary(tokens), limits);
      const cold = follow(start().start(), 1, 40);
      if (kib === 12) expect(cold.error).toBe('invalid_grammar');
      const used = start();
      for (const seed of [2, 3, 4]) follow(used.start(), seed, 40);
      expect(resultOf(follow(used.start(), 1, 40))).toEqual(resultOf(cold));
    },
  );
});

describe('a text that fails', () => {
  it.each([20_000, undefined])(
    'fails behind its last token and not while it takes it, with %s units per call',
    (unitsPerCall) => {
      const program = compileProgram(CONSTRAINTS['an ambiguous grammar']!);
      const limits = { operationBytes: 12 * 1024, unitsPerCall };
      const constraint = new GrammarRuntime(program, new GrammarVocabulary(tokens), limits).start();
      let taken = 0;
      const mask = (): readonly number[] => allowedTokens(finished(() => constraint.mask()));
      const follow = (): void => {
        for (; taken < 1000; taken++) {
          const [id] = mask();
          expect(() => constraint.accept(id!)).not.toThrow();
        }
      };
      expect(follow).toThrow(expect.objectContaining({ code: 'invalid_grammar' }));
      expect(taken).toBeGreaterThan(3);
      expect(taken).toBeLessThan(1000);
    },
  );
});

describe('the memory of the tables of all grammars', () => {
  const KIB = 1024;

  /** Follows texts of all constraints, a call of each in turn, and goes on with what is unfinished. */
  function followTogether(constraints: readonly Constraint[], onCall: () => void): Text[] {
    const texts = constraints.map((constraint, seed) => {
      const random = randomFrom(seed);
      return { constraint, random, ids: [] as number[], masks: [] as number[][], interruptions: 0 };
    });
    const isDone = ({ ids, masks }: (typeof texts)[number]) =>
      ids.length === 12 || masks.at(-1)?.length === 0;
    while (!texts.every(isDone)) {
      for (const text of texts.filter((one) => !isDone(one))) {
        try {
          const allowed = allowedTokens(text.constraint.mask());
          text.masks.push(allowed);
          if (allowed.length > 0) {
            const id = allowed[Math.floor(text.random() * allowed.length)]!;
            text.constraint.accept(id);
            text.ids.push(id);
          }
        } catch (error) {
          if (!(error instanceof UnfinishedWork)) throw error;
          if (++text.interruptions > MAX_INTERRUPTIONS) throw new Error('The work is never finished');
        }
        onCall();
      }
    }
    return texts.map((text) => ({ ...text, error: null }));
  }

  it.each([0, 40, 100])('stays within %d KiB and what two sequences use, and changes no text', (kib) => {
    const programs = Object.values(CONSTRAINTS).map(compileProgram);
    const limits = { unitsPerCall: 20_000 };
    const startAll = (vocabulary: GrammarVocabulary): Constraint[] =>
      [0, 1, 2].flatMap(() =>
        programs.map((program) => new GrammarRuntime(program, vocabulary, limits).start()),
      );
    const limited = new GrammarVocabulary(tokens, 0, kib * KIB);
    let most = 0;
    const together = followTogether(startAll(limited), () => {
      most = Math.max(most, limited.tables.bytes);
    });
    const ample = startAll(new GrammarVocabulary(tokens)).map((constraint, seed) => follow(constraint, seed));
    expect(together.map(resultOf)).toEqual(ample.map(resultOf));
    const all = new GrammarVocabulary(tokens);
    followTogether(startAll(all), () => {});
    // The tables of the sequence that goes on and of the one that made the call have 40 KiB.
    expect(most).toBeLessThanOrEqual(Math.max(kib, 40) * KIB);
    expect(all.tables.bytes).toBeGreaterThan(150 * KIB);
  });

  it('protects the tables of one sequence whose work goes on, then those of the next', () => {
    const memory = new TableMemory(0);
    const program = compileProgram(CONSTRAINTS['a schema']!);
    class User implements TableUser {
      readonly ref: WeakRef<TableUser> = new WeakRef(this);
      tables: TableHandle[] = [];
      /** Makes a call with a new table. */
      call(goesOn: boolean): void {
        this.tables = [new TableHandle(new StateTable(program))];
        memory.afterCall(this, goesOn);
      }
      get hasTable(): boolean {
        return this.tables[0]!.table !== null;
      }
    }
    const [first, second, other] = [new User(), new User(), new User()];
    first.call(true);
    second.call(true);
    other.call(false);
    expect([first, second, other].map(({ hasTable }) => hasTable)).toEqual([true, false, true]);
    first.call(false);
    second.call(true);
    other.call(false);
    expect([first, second, other].map(({ hasTable }) => hasTable)).toEqual([false, true, true]);
  });
});

describe('the work of a call', () => {
  const work = (units: number) => (budget: WorkBudget) => budget.spend(units);

  it('does not depend on the calls before it', () => {
    const spent: number[] = [];
    const budget = new StepBudget(152_000, (units) => spent.push(units));
    // The most expensive masks of real schemas take 1.7 million units.
    for (let call = 0; call < 200; call++) budget.run(work(1_800_000));
    expect(spent).toEqual(Array(200).fill(1_800_000));
  });

  it('is limited', () => {
    const budget = new StepBudget(152_000, () => {});
    expect(() => budget.run(work(6_000_000))).toThrow(UnfinishedWork);
  });

  it('fails for good only if a piece is too large by itself', () => {
    const budget = new StepBudget(152_000, () => {});
    expect(() => budget.run((left) => left.piece(1000).spend(1001))).toThrow(
      /too ambiguous or too large to follow/,
    );
  });
});
