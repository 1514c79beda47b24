import { choice, type Expression, type Grammar, GrammarBuilder, repeat, sequence } from '../expression.ts';
import { expandedSize } from './inlining.ts';

/** Counted repetitions are unrolled up to this number of states. Beyond it, the repeated part becomes a rule. */
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
  const halving = new Halving(unit, builder);
  const rest = Number.isFinite(max) ? halving.upTo(max - min) : repeat(unit, 0, Number.POSITIVE_INFINITY);
  return sequence(halving.exactly(min), rest);
}

/** Repetitions of one unit, in size logarithmic in the count. */
class Halving {
  readonly #unit: Expression;
  readonly #builder: GrammarBuilder;
  readonly #rules = new Map<string, Expression>();

  constructor(unit: Expression, builder: GrammarBuilder) {
    this.#unit = unit;
    this.#builder = builder;
  }

  exactly(count: number): Expression {
    if (count <= MAX_UNROLLED) return repeat(this.#unit, count, count);
    const half = Math.floor(count / 2);
    return this.#rule(`${count}`, () => sequence(this.exactly(half), this.exactly(count - half)));
  }

  upTo(count: number): Expression {
    if (count <= MAX_UNROLLED) return repeat(this.#unit, 0, count);
    const half = Math.floor(count / 2);
    return this.#rule(`0-${count}`, () =>
      choice([this.upTo(half), sequence(this.exactly(half), this.upTo(count - half))]),
    );
  }

  #rule(key: string, make: () => Expression): Expression {
    const known = this.#rules.get(key);
    if (known) return known;
    const created = this.#builder.add(make());
    this.#rules.set(key, created);
    return created;
  }
}
