import type { AnyOrder, Expression, Grammar } from '../../../../origin/grammar/rules/expression.ts';
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
    case 'anyOrder':
      return listOf(expression, builder);
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

/** One production per list of members so far; only for few members. */
function listOf(order: AnyOrder, builder: BnfBuilder): BnfSymbol {
  const known = new Map<string, { rule: number } & BnfSymbol>();
  /** Whether one more of the other members matters to the bounds. */
  const isCounted = (written: readonly (number | null)[]): boolean =>
    Number.isFinite(order.max) || written.filter((one) => one === null).length < Math.max(1, order.min);
  const missing = (written: readonly (number | null)[]): number =>
    order.members.filter(({ required }, i) => required && !written.includes(i)).length;
  /** What may follow `written` members (null = another one), in ascending order as only their set matters. */
  const rest = (written: readonly (number | null)[]): { rule: number } & BnfSymbol => {
    const key = JSON.stringify(written);
    const existing = known.get(key);
    if (existing) return existing;
    const symbol = builder.add([]) as { rule: number } & BnfSymbol;
    known.set(key, symbol);
    const isFull = missing(written) === 0;
    if (written.length > 0 && isFull && written.length >= order.min) builder.rules[symbol.rule]!.push([]);
    const separator: BnfSymbol[] = written.length === 0 ? [] : [{ kind: 'rule', rule: order.separator }];
    const add = (rule: number, next: readonly (number | null)[]): void => {
      if (next.length + missing(next) <= order.max)
        builder.rules[symbol.rule]!.push([...separator, { kind: 'rule', rule }, rest(next)]);
    };
    order.members.forEach(({ rule }, i) => {
      if (!written.includes(i))
        add(
          rule,
          [...written, i].sort((a, b) => Number(a ?? -1) - Number(b ?? -1)),
        );
    });
    if (order.additional === null) return symbol;
    add(order.additional, isCounted(written) ? [null, ...written] : written);
    return symbol;
  };
  return rest([]);
}
