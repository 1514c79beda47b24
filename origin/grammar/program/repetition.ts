import { choice, type Expression, type Grammar, GrammarBuilder, repeat, sequence } from '../expression.ts';
import { expandedSize } from './inlining.ts';

/** Counted repetitions are written out up to this many states; beyond it the repeated part becomes a rule. */
const WRITTEN_OUT = 300;
/** Beyond this many repetitions the count is halved again and again, each half a rule. */
const CHAIN = 1024;

/** Rewrites counted repetitions so that no automaton grows out of proportion to the source. */
export function foldRepetitions(grammar: Grammar): Grammar {
  const builder = new GrammarBuilder();
  for (const _ of grammar.rules) builder.declare();
  const folder = new RepetitionFolder(builder);
  grammar.rules.forEach((expression, index) => {
    builder.define(index, folder.fold(expression));
  });
  return builder.build(grammar.root);
}

class RepetitionFolder {
  readonly #builder: GrammarBuilder;

  constructor(builder: GrammarBuilder) {
    this.#builder = builder;
  }

  fold(expression: Expression): Expression {
    switch (expression.kind) {
      case 'sequence':
      case 'choice':
        return { kind: expression.kind, items: expression.items.map((item) => this.fold(item)) };
      case 'graph':
        return { ...expression, edges: expression.edges.map((e) => ({ ...e, label: this.fold(e.label) })) };
      case 'repeat':
        return this.#foldRepeat(this.fold(expression.item), expression.min, expression.max);
      default:
        return expression;
    }
  }

  #foldRepeat(item: Expression, min: number, max: number): Expression {
    const count = Number.isFinite(max) ? max : min;
    const size = expandedSize(item, () => 1);
    if (count <= 1 || size * count <= WRITTEN_OUT) return repeat(item, min, max);
    const unit = item.kind === 'rule' ? item : this.#builder.add(item);
    if (count <= CHAIN) return repeat(unit, min, max);
    const halving = new Halving(unit, this.#builder);
    const rest = Number.isFinite(max) ? halving.upTo(max - min) : repeat(unit, 0, Number.POSITIVE_INFINITY);
    return sequence(halving.exactly(min), rest);
  }
}

/** Repetitions of one unit whose size grows with the logarithm of the count. */
class Halving {
  readonly #unit: Expression;
  readonly #builder: GrammarBuilder;
  readonly #exact = new Map<number, Expression>();
  readonly #upTo = new Map<number, Expression>();

  constructor(unit: Expression, builder: GrammarBuilder) {
    this.#unit = unit;
    this.#builder = builder;
  }

  exactly(count: number): Expression {
    if (count <= CHAIN) return repeat(this.#unit, count, count);
    return memo(this.#exact, count, () => {
      const half = Math.floor(count / 2);
      return this.#builder.add(sequence(this.exactly(half), this.exactly(count - half)));
    });
  }

  upTo(count: number): Expression {
    if (count <= CHAIN) return repeat(this.#unit, 0, count);
    return memo(this.#upTo, count, () => {
      const half = Math.floor(count / 2);
      return this.#builder.add(
        choice([this.upTo(half), sequence(this.exactly(half), this.upTo(count - half))]),
      );
    });
  }
}

/** Looks a value up, or makes and keeps it. */
function memo(map: Map<number, Expression>, key: number, make: () => Expression): Expression {
  const known = map.get(key);
  if (known) return known;
  const made = make();
  map.set(key, made);
  return made;
}
