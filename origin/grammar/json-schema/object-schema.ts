import {
  choice,
  EMPTY,
  type Expression,
  type GraphEdge,
  NOTHING,
  repeat,
  sequence,
  text,
} from '../expression.ts';
import { schemaError } from '../grammar-error.ts';
import { anyOrder } from './any-order.ts';
import { countRange } from './assertions.ts';
import type { KeywordNodes } from './conjunction.ts';
import { escapedExpression } from './escaped-string.ts';
import { OBJECT_KEYWORDS } from './keywords.ts';
import { type ObjectProperties, objectProperties } from './object-properties.ts';
import type { SchemaContext } from './schema-context.ts';

const MAX_COUNTED = 200;

/** Objects: declared members in the order of declaration, optional ones present or absent, then other members. */
export function objectExpression(nodes: KeywordNodes, context: SchemaContext): Expression {
  const isFree = nodes.every(({ schema }) =>
    OBJECT_KEYWORDS.every((keyword) => schema[keyword] === undefined),
  );
  if (isFree) return context.json.anyObject;
  const keys = objectProperties(nodes, context);
  const { min, max } = countRange(nodes, 'minProperties', 'maxProperties');
  const required = keys.declared.filter((member) => member.required).length;
  if (max < required || min > max) return NOTHING;
  const available = keys.others.length > 0 ? Number.POSITIVE_INFINITY : keys.declared.length;
  const isCounted = min > required || max < available;
  if (isCounted) checkCounts(nodes, keys, min, max);
  if (context.style.anyKeyOrder) {
    const members = keys.declared.map((member) => ({
      label: memberExpression(member, context),
      required: member.required,
    }));
    const other = otherMember(keys, context);
    return context.json.objectOf(anyOrder({ members, other, min, max }, context));
  }
  return context.json.objectOf(new MemberGraph(keys, isCounted ? { min, max } : null, context).build());
}

function checkCounts(nodes: KeywordNodes, keys: ObjectProperties, min: number, max: number): void {
  const pathOf = (keyword: string): string =>
    `${nodes.find(({ schema }) => schema[keyword] !== undefined)?.path ?? '#'}/${keyword}`;
  if (keys.others.length > 0 && min > keys.declared.length + 1) {
    throw schemaError(
      pathOf('minProperties'),
      'cannot be enforced if undeclared keys may repeat; set additionalProperties to false',
    );
  }
  if (min > MAX_COUNTED)
    throw schemaError(pathOf('minProperties'), `must be at most ${MAX_COUNTED}, received ${min}`);
  if (Math.min(max, keys.declared.length) > MAX_COUNTED) {
    throw schemaError(pathOf('maxProperties'), `at most ${MAX_COUNTED} properties can be counted`);
  }
}

interface Counts {
  readonly min: number;
  readonly max: number;
}

/**
 * The members between the braces: an automaton over (declared members passed, members written). Without `counts`, it
 * only tracks whether a member was written, for the comma.
 */
class MemberGraph {
  readonly #keys: ObjectProperties;
  readonly #counts: Counts | null;
  readonly #context: SchemaContext;
  readonly #edges: GraphEdge[] = [];
  readonly #states = new Map<string, number>();

  constructor(keys: ObjectProperties, counts: Counts | null, context: SchemaContext) {
    this.#keys = keys;
    this.#counts = counts;
    this.#context = context;
  }

  build(): Expression {
    const { declared } = this.#keys;
    this.#state(0, 0);
    const final = this.#register('end');
    const maxWritten = this.#counts === null ? 1 : Math.min(declared.length, this.#counts.max);
    declared.forEach((member, position) => {
      const value = sequence(this.#context.json.colon, this.#context.ruleFor(member.value));
      const key = text(JSON.stringify(member.key));
      for (let written = 0; written <= Math.min(maxWritten, position); written++) {
        const from = this.#state(position, written);
        if (!member.required) this.#edge(from, this.#state(position + 1, written), EMPTY);
        const next = this.#counts === null ? 1 : written + 1;
        if (next > maxWritten) continue;
        this.#edge(from, this.#register(`key ${position}/${next}`), this.#after(written, key));
      }
      for (let written = 1; written <= Math.min(maxWritten, position + 1); written++) {
        this.#edge(this.#register(`key ${position}/${written}`), this.#state(position + 1, written), value);
      }
    });
    const other = otherMember(this.#keys, this.#context);
    for (let written = 0; written <= Math.min(maxWritten, declared.length); written++) {
      this.#addOthers(this.#state(declared.length, written), written, other, final);
    }
    return { kind: 'graph', states: this.#states.size, edges: this.#edges, final };
  }

  #state(position: number, written: number): number {
    return this.#register(`${position}/${written}`);
  }

  #register(name: string): number {
    const known = this.#states.get(name);
    if (known !== undefined) return known;
    this.#states.set(name, this.#states.size);
    return this.#states.size - 1;
  }

  #edge(from: number, to: number, label: Expression): void {
    this.#context.budget.spend(20);
    this.#edges.push({ from, to, label });
  }

  #after(written: number, member: Expression): Expression {
    return written === 0 ? member : sequence(this.#context.json.comma, member);
  }

  /**
   * Adds undeclared members. Several of them may have the same key, so together they count as one towards the minimum.
   */
  #addOthers(from: number, written: number, other: Expression | null, final: number): void {
    const { min, max } = this.#counts ?? { min: 0, max: Number.POSITIVE_INFINITY };
    const missing = Math.max(0, min - written);
    const room = max - written;
    if (missing === 0) this.#edge(from, final, EMPTY);
    if (other === null || missing > 1 || room < 1) return;
    const more = repeat(sequence(this.#context.json.comma, other), 0, room - 1);
    this.#edge(from, final, sequence(this.#after(written, other), more));
  }
}

function memberExpression(
  { key, value }: ObjectProperties['declared'][number],
  context: SchemaContext,
): Expression {
  return sequence(text(JSON.stringify(key)), context.json.colon, context.ruleFor(value));
}

/** A member with an undeclared key; null if there are none. */
function otherMember({ others }: ObjectProperties, context: SchemaContext): Expression | null {
  if (others.length === 0) return null;
  const { json } = context;
  return choice(
    others.map(({ keys, value }) => {
      const key = keys === null ? json.string : json.stringOf(escapedExpression(keys));
      return sequence(key, json.colon, context.ruleFor(value));
    }),
  );
}
