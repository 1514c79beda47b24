import {
  choice,
  type Expression,
  type Grammar,
  GrammarBuilder,
  repeat,
  sequence,
} from '../rules/expression.ts';
import { expandedSize } from './call-plan.ts';

/**
 * Counted repetitions are unrolled up to this number of states. Beyond it, the repeated part becomes a rule.
 */
const MAX_EXPANDED_STATES = 300;
/** Beyond this count, the repetition is halved repeatedly; each half is a rule. */
const MAX_UNROLLED = 1024;

/** Rewrites counted repetitions so that no automaton grows out of proportion to the source. */
export function rewriteRepetitions(grammar: Grammar): Grammar {
  const builder = new GrammarBuilder();
  for (const _ of grammar.rules) builder.declare();
  grammar.rules.forEach((expression, index) => {
    builder.define(index, rewrite(expression, builder));
  });
  return { ...grammar, rules: builder.build(grammar.root).rules };
}

function rewrite(expression: Expression, builder: GrammarBuilder): Expression {
  switch (expression.kind) {
    case 'sequence':
    case 'choice':
      return { kind: expression.kind, items: expression.items.map((item) => rewrite(item, builder)) };
    case 'graph': {
      const edges = expression.edges.map((edge) => ({ ...edge, label: rewrite(edge.label, builder) }));
      return { ...expression, edges };
    }
    case 'repeat':
      return rewriteRepeat(rewrite(expression.item, builder), expression.min, expression.max, builder);
    default:
      return expression;
  }
}

function rewriteRepeat(item: Expression, min: number, max: number, builder: GrammarBuilder): Expression {
  const count = Number.isFinite(max) ? max : min;
  const size = expandedSize(item, () => 1);
  if (count <= 1 || size * count <= MAX_EXPANDED_STATES) return repeat(item, min, max);
  const unit = item.kind === 'rule' ? item : builder.add(item);
  if (count <= MAX_UNROLLED) return repeat(unit, min, max);
  const { exactly, upTo } = halving(unit, builder);
  const rest = Number.isFinite(max) ? upTo(max - min) : repeat(unit, 0, Number.POSITIVE_INFINITY);
  return sequence(exactly(min), rest);
}

/** Repetitions of one unit, in size logarithmic in the count. */
function halving(unit: Expression, builder: GrammarBuilder) {
  const rules = new Map<string, Expression>();
  const ruleFor = (key: string, make: () => Expression): Expression => {
    const rule = rules.get(key) ?? builder.add(make());
    rules.set(key, rule);
    return rule;
  };
  const exactly = (count: number): Expression => {
    if (count <= MAX_UNROLLED) return repeat(unit, count, count);
    const half = Math.floor(count / 2);
    return ruleFor(`${count}`, () => sequence(exactly(half), exactly(count - half)));
  };
  const upTo = (count: number): Expression => {
    if (count <= MAX_UNROLLED) return repeat(unit, 0, count);
    const half = Math.floor(count / 2);
    return ruleFor(`0-${count}`, () => choice([upTo(half), sequence(exactly(half), upTo(count - half))]));
  };
  return { exactly, upTo };
}
