import {
  chars,
  choice,
  type Expression,
  type GrammarBuilder,
  optional,
  type RuleReference,
  repeat,
  rule,
  sequence,
  text,
} from '../rules/expression.ts';
import { oneOf, UNESCAPED_CHARACTERS } from './escaped-string.ts';
import { isJsonObject } from './keywords.ts';

/**
 * Maximum spaces or tabs after a line break: ten levels of the usual indentation. The limit keeps weak models
 * from emitting endless whitespace.
 */
const MAX_SPACES = 20;
const MAX_TABS = 10;
/**
 * Maximum digits of unbounded numbers before the point, after it, and in the exponent. They keep every number
 * finite.
 */
const MAX_DIGITS = 16;
const MAX_EXPONENT_DIGITS = 2;

const HEX = [0x30, 0x39, 0x41, 0x46, 0x61, 0x66];
const DIGIT = [0x30, 0x39];

/** `\uXXXX`: a scalar value, or a pair of surrogates. */
function unicodeEscape(): Expression {
  const hex = chars(HEX);
  const d = oneOf('dD');
  const plain = choice([
    sequence(oneOf('0123456789abcefABCEF'), hex, hex, hex),
    sequence(d, oneOf('01234567'), hex, hex),
  ]);
  const pair = sequence(d, oneOf('89abAB'), hex, hex, text('\\u'), d, oneOf('cdefCDEF'), hex, hex);
  return sequence(text('u'), choice([plain, pair]));
}

/** One character between the quotes of a JSON string: plain, or any JSON escape. */
export function stringCharacter(): Expression {
  return choice([
    chars(UNESCAPED_CHARACTERS),
    sequence(text('\\'), choice([oneOf('"\\/bfnrt'), unicodeEscape()])),
  ]);
}

/**
 * The parts of JSON texts as rules, each added once per grammar. Whitespace may follow `{ [ ,` and precede `}
 * ]`: nothing, one space, or a line break with limited indentation. After `:` at most one space is allowed.
 */
export class JsonRules {
  readonly #builder: GrammarBuilder;
  readonly #rules = new Map<string, RuleReference>();

  constructor(builder: GrammarBuilder) {
    this.#builder = builder;
  }

  get space(): Expression {
    return this.#once('space', () => {
      const indentation = choice([repeat(text(' '), 0, MAX_SPACES), repeat(text('\t'), 1, MAX_TABS)]);
      return optional(choice([text(' '), sequence(optional(text('\r')), text('\n'), indentation)]));
    });
  }

  get string(): RuleReference {
    return this.#once('string', () => this.stringOf(repeat(stringCharacter(), 0, Number.POSITIVE_INFINITY)));
  }

  get number(): Expression {
    return this.#once('number', () => {
      const fraction = sequence(text('.'), repeat(chars(DIGIT), 1, MAX_DIGITS));
      const exponent = sequence(
        oneOf('eE'),
        optional(oneOf('+-')),
        repeat(chars(DIGIT), 1, MAX_EXPONENT_DIGITS),
      );
      const whole = choice([
        text('0'),
        sequence(oneOf('123456789'), repeat(chars(DIGIT), 0, MAX_DIGITS - 1)),
      ]);
      return sequence(optional(text('-')), whole, optional(fraction), optional(exponent));
    });
  }

  get comma(): Expression {
    return sequence(text(','), this.space);
  }

  get colon(): Expression {
    return sequence(text(':'), optional(text(' ')));
  }

  stringOf(content: Expression): Expression {
    return sequence(text('"'), content, text('"'));
  }

  arrayOf(items: Expression): Expression {
    return sequence(text('['), this.space, items, this.space, text(']'));
  }

  objectOf(members: Expression): Expression {
    return sequence(text('{'), this.space, members, this.space, text('}'));
  }

  /** A fixed value, spelled like JSON.stringify does, with whitespace between its parts. */
  literal(value: unknown): Expression {
    if (Array.isArray(value)) {
      return this.arrayOf(
        joined(
          value.map((item) => this.literal(item)),
          this.comma,
        ),
      );
    }
    if (isJsonObject(value)) {
      const members = Object.entries(value).map(([key, inner]) =>
        sequence(text(JSON.stringify(key)), this.colon, this.literal(inner)),
      );
      return this.objectOf(joined(members, this.comma));
    }
    return text(JSON.stringify(value));
  }

  #once(name: string, make: () => Expression): RuleReference {
    const cached = this.#rules.get(name);
    if (cached) return cached;
    const index = this.#builder.declare();
    this.#rules.set(name, rule(index));
    this.#builder.define(index, make());
    return rule(index);
  }
}

export function joined(items: readonly Expression[], separator: Expression): Expression {
  return sequence(...items.flatMap((item, i) => (i === 0 ? [item] : [separator, item])));
}
