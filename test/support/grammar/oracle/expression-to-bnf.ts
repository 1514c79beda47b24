import type { Expression, Grammar } from '../../../../origin/grammar/expression.ts';
import { type Bnf, BnfBuilder, type BnfSymbol } from './bnf.ts';

/** Converts a front end's output to productions. The oracle uses no other part of the engine. */
export function bnfOfGrammar(grammar: Grammar): Bnf {
  const builder = new BnfBuilder();
  for (const _ of grammar.rules) builder.add([]);
  grammar.rules.forEach((expression, rule) => {
    builder.rules[rule] = [[symbolOf(expression, builder)]];
  });
  return { rules: builder.rules, root: grammar.root };
}

function symbolOf(expression: Expression, builder: BnfBuilder): BnfSymbol {
  switch (expression.kind) {
    case 'bytes':
      return builder.add([builder.bytes(expression.bytes)]);
    case 'chars': {
      const ranges: [number, number][] = [];
      for (let i = 0; i < expression.set.length; i += 2)
        ranges.push([expression.set[i]!, expression.set[i + 1]!]);
      return { kind: 'char', ranges };
    }
    case 'tokens':
      return builder.tokens(expression.ids);
    case 'sequence':
      return builder.add([expression.items.map((item) => symbolOf(item, builder))]);
    case 'choice':
      return builder.add(expression.items.map((item) => [symbolOf(item, builder)]));
    case 'repeat':
      return builder.repeat(symbolOf(expression.item, builder), expression.min, expression.max);
    case 'rule':
      return expression;
    case 'graph': {
      const states = Array.from(
        { length: expression.states },
        () => builder.add([]) as { rule: number } & BnfSymbol,
      );
      builder.rules[states[expression.final]!.rule]!.push([]);
      for (const { from, to, label } of expression.edges) {
        builder.rules[states[from]!.rule]!.push([symbolOf(label, builder), states[to]!]);
      }
      return states[0]!;
    }
  }
}
