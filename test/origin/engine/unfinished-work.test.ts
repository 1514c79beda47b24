import { describe, expect, it } from 'vitest';
import type { Submission } from '../../../origin/engine/messages.ts';
import { compileProgram } from '../../../origin/grammar/compile.ts';
import {
  type CompiledGrammar,
  type Constraint,
  UnfinishedWork,
} from '../../../origin/grammar/runtime/constraint.ts';
import { GrammarRuntime } from '../../../origin/grammar/runtime/grammar-runtime.ts';
import { GrammarVocabulary } from '../../../origin/grammar/runtime/grammar-vocabulary.ts';
import { Driver } from './support/engine-driver.ts';
import { endless, shape, tokensSoFar } from './support/long-requests.ts';
import { ScriptedRunner } from './support/scripted-runner.ts';
import { transcribe } from './support/transcript.ts';
import { BOS, TOKEN_BYTES } from './support/vocabulary.ts';

/** Ambiguous, so that a step of the parser has many items. */
const SOURCE = 'root ::= (x | y)+\nx ::= "a" x? "b"? | "c" [ ab]?\ny ::= [a-c] y | x " " | "é"';
const PROGRAM = compileProgram({ type: 'gbnf', value: SOURCE });
/** Less than a mask costs, and more than one step of the parser. */
const FEW_UNITS = 3000;

/** Counts the calls of a grammar that have to go on. */
function counted(grammar: CompiledGrammar, onUnfinished: () => void): CompiledGrammar {
  const watch = <T>(call: () => T): T => {
    try {
      return call();
    } catch (error) {
      if (error instanceof UnfinishedWork) onUnfinished();
      throw error;
    }
  };
  const watched = (constraint: Constraint): Constraint => ({
    get accepting() {
      return constraint.accepting;
    },
    mask: () => watch(() => constraint.mask()),
    allowsBytes: (bytes) => watch(() => constraint.allowsBytes(bytes)),
    completesWith: (token) => watch(() => constraint.completesWith!(token)),
    accept: (token) => constraint.accept(token),
    acceptBytes: (bytes) => constraint.acceptBytes(bytes),
    save: () => constraint.save(),
  });
  return { start: (onWork) => watched(grammar.start(onWork)) };
}

/** An engine with one grammar, whose masks are kept from request to request. */
class Deployment {
  readonly driver: Driver;
  /** Calls of the grammar that had to go on in a later step. */
  unfinished = 0;

  constructor(unitsPerCall?: number) {
    const grammar = new GrammarRuntime(PROGRAM, new GrammarVocabulary(TOKEN_BYTES), { unitsPerCall });
    const compile = () => counted(grammar, () => this.unfinished++);
    this.driver = new Driver(new ScriptedRunner(shape(8)), { compile });
  }

  async step(): Promise<void> {
    await this.driver.step();
    await new Promise((resolve) => setImmediate(resolve));
  }

  /** Runs a request with the constraint, and returns its choices and its end. */
  async run(requestId: string, fields: Partial<Submission>) {
    const choices = fields.choices ?? 1;
    this.driver.submit({ ...endless(requestId, 12), ...fields, constraint: '{}' });
    const transcript = () => transcribe(this.driver.eventsOf(requestId), choices);
    for (let steps = 0; transcript().end === null; steps++) {
      if (steps === 5000) throw new Error('The request does not end');
      await this.step();
    }
    const { end, choices: texts } = transcript();
    return { end, texts: [...texts].map(([choice, { text, ids }]) => ({ choice, text, ids })) };
  }
}

const healed = [{ tokens: Int32Array.of(BOS, 2, 0), maxTokens: 12, healFrom: 1 }];
const REQUESTS: readonly (readonly [string, Partial<Submission>])[] = [
  ['of one choice', {}],
  ['of several choices', { choices: 3 }],
  ['with banned phrases', { bannedPhrases: ['ca', 'bb'] }],
  ['whose prompt is healed', { prompts: healed }],
];

describe('a request whose masks need several steps', () => {
  it.each(REQUESTS)(
    '%s has the same text as with ample limits, alone and among others',
    async (_, fields) => {
      const ample = new Deployment();
      const expected = await ample.run('ample', fields);
      expect(ample.unfinished).toBe(0);

      const few = new Deployment(FEW_UNITS);
      expect(await few.run('cold', fields)).toEqual(expected);
      const cold = few.unfinished;
      expect(cold).toBeGreaterThan(3);
      expect(await few.run('warm', fields)).toEqual(expected);
      expect(few.unfinished - cold).toBeLessThan(cold);

      const shared = new Deployment(FEW_UNITS);
      for (const other of ['x', 'y']) {
        const sampling = { ...endless(other, 1).sampling, seed: other.charCodeAt(0) };
        shared.driver.submit({ ...endless(other, 12, other), sampling, constraint: '{}' });
      }
      expect(await shared.run('among others', fields)).toEqual(expected);
    },
  );

  it('does not hold up others: their streams get a token in every step', async () => {
    const few = new Deployment(FEW_UNITS);
    const { driver } = few;
    driver.submit(endless('stream', 2000, 'other'));
    await few.step();
    driver.submit({ ...endless('constrained', 12), constraint: '{}' });
    let stepsWithWork = 0;
    while (tokensSoFar(driver, 'constrained') < 12) {
      const { unfinished } = few;
      const before = tokensSoFar(driver, 'stream');
      await few.step();
      expect(tokensSoFar(driver, 'stream')).toBe(before + 1);
      if (few.unfinished > unfinished) stepsWithWork++;
    }
    expect(stepsWithWork).toBeGreaterThan(3);
  });
});
