import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { compileProgram } from '../../../origin/grammar/compile.ts';
import { completionRequest } from '../../../shared/completion.ts';
import { constraintOf } from '../../../worker/dialects/constraints.ts';

const page = readFileSync('docs/constraints.md', 'utf8');
const bodies = [...page.matchAll(/^```json run=[a-z-]+\n(.*?)^```/gms)].map(([, body]) => body!);

describe('the examples of docs/constraints.md', () => {
  it.each(bodies)('compile: %s', (body) => {
    const named = constraintOf(completionRequest.parse(JSON.parse(body)));
    expect(compileProgram(named!.constraint).ruleOf.length).toBeGreaterThan(0);
  });

  it('include each type of constraint', () => {
    const types = bodies.map((body) => constraintOf(JSON.parse(body))!.constraint.type);
    expect(new Set(types)).toEqual(
      new Set(['json_schema', 'json_object', 'gbnf', 'regex', 'choice', 'lark']),
    );
  });
});
