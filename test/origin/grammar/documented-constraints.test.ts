import { describe, expect, it } from 'vitest';
import { compileProgram } from '../../../origin/grammar/compile.ts';
import { completionRequest } from '../../../shared/completion.ts';
import { constraintOf } from '../../../worker/dialects/constraints.ts';
import { DIALECTS } from '../../../worker/dialects/dialect.ts';
import { examplesIn } from '../../docs/pages.ts';

const constraintIn = (body: string) =>
  constraintOf(completionRequest.parse(JSON.parse(body)), DIALECTS.openai, {})!.constraint;

describe('documented request bodies', () => {
  it.each(examplesIn('json'))('$id has a constraint that compiles', ({ code }) => {
    expect(compileProgram(constraintIn(code)).ruleOf.length).toBeGreaterThan(0);
  });

  it('include each type of constraint', () => {
    const types = examplesIn('json').map(({ code }) => constraintIn(code).type);
    expect(new Set(types)).toEqual(
      new Set(['json_schema', 'json_object', 'gbnf', 'regex', 'choice', 'lark']),
    );
  });
});
