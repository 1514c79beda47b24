import { acceptsText, isEmptyLanguage } from '../automaton/dfa.ts';
import {
  choice,
  EMPTY,
  type Expression,
  type GraphEdge,
  NOTHING,
  optional,
  type RuleReference,
  repeat,
  rule,
  sequence,
  text,
} from '../rules/expression.ts';
import { schemaError } from '../rules/grammar-error.ts';
import { anyOrder } from './any-order.ts';
import { countRange } from './assertions.ts';
import {
  derived,
  type KeywordNode,
  type KeywordNodes,
  SOME_PROPERTY,
  type SomeProperty,
} from './conjunction.ts';
import { joined } from './json-rules.ts';
import { type ObjectProperties, objectProperties } from './object-properties.ts';
import type { SchemaContext } from './schema-context.ts';
import { both, languageOf } from './string-schema.ts';

const MAX_COUNTED = 200;

/**
 * Objects: declared members in the order of declaration, optional ones present or absent, then other members.
 */
export function objectExpression(nodes: KeywordNodes, context: SchemaContext): Expression {
  const keys = objectProperties(nodes, context);
  const open = nodes.find(
    ({ schema }) => schema[SOME_PROPERTY] !== undefined && schema[SOME_PROPERTY].key === undefined,
  );
  if (open !== undefined) return withSomeProperty(open, nodes, keys, context);
  const { min, max } = countRange(nodes, 'minProperties', 'maxProperties');
  const required = keys.declared.filter((member) => member.required).length;
  if (max < required || min > max) return NOTHING;
  const available = keys.others.length > 0 ? Number.POSITIVE_INFINITY : keys.declared.length;
  const isCounted = min > required || max < available;
  if (isCounted) checkCounts(nodes, keys, min, max);
  const marked = markedMembers(nodes, keys.others, context);
  if (marked?.length === 0) return NOTHING;
  // Of two members with equal keys, JSON.parse takes the last one, so the runtime keeps all keys different.
  const isDistinct = keys.others.length > 0 && (min > 1 || marked !== null);
  const objectOf = (content: Expression): Expression =>
    isDistinct ? context.withDistinct(context.json.objectOf(content)) : context.json.objectOf(content);
  if (context.style.anyKeyOrder && marked === null && keys.declared.length > 0) {
    const members = keys.declared.map((member) => ({
      rule: memberRule(member, context),
      required: member.required,
    }));
    const additional = otherMember(keys.others, context);
    return objectOf(anyOrder({ members, additional: additional?.rule ?? null, min, max }, context));
  }
  return objectOf(new MemberGraph(keys, isCounted ? { min, max } : null, marked, context).build());
}

/** The objects in which a declared property is the one that satisfies a condition, or an undeclared one. */
function withSomeProperty(
  node: KeywordNode,
  nodes: KeywordNodes,
  { declared }: ObjectProperties,
  context: SchemaContext,
): Expression {
  const some = node.schema[SOME_PROPERTY]!;
  const names = languageOf(some.names, context);
  const keys = declared.map(({ key }) => key).filter((key) => names === null || acceptsText(names, key));
  const others = nodes
    .filter((sibling) => sibling !== node)
    .map((sibling) => ({ node: sibling, part: 'keywords' as const }));
  return choice(
    [...keys, null].map((key) => {
      const schema = { type: 'object', [SOME_PROPERTY]: { ...some, key } } as const;
      return context.ruleFor([
        ...others,
        derived(node, key === null ? 'undeclared' : `declared ${key}`, schema),
      ]);
    }),
  );
}

function checkCounts(nodes: KeywordNodes, keys: ObjectProperties, min: number, max: number): void {
  const pathOf = (keyword: string): string =>
    `${nodes.find(({ schema }) => schema[keyword] !== undefined)?.path ?? '#'}/${keyword}`;
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
 * The members between the braces: an automaton over (declared members passed, members written), which is
 * ready for a member or done with one. Without `counts`, it does not track how many were written.
 */
class MemberGraph {
  readonly #keys: ObjectProperties;
  readonly #counts: Counts | null;
  readonly #marked: readonly MarkedMembers[] | null;
  readonly #context: SchemaContext;
  readonly #edges: GraphEdge[] = [];
  readonly #states = new Map<string, number>();

  constructor(
    keys: ObjectProperties,
    counts: Counts | null,
    marked: readonly MarkedMembers[] | null,
    context: SchemaContext,
  ) {
    this.#keys = keys;
    this.#counts = counts;
    this.#marked = marked;
    this.#context = context;
  }

  build(): Expression {
    const { declared } = this.#keys;
    const { comma, colon } = this.#context.json;
    const start = this.#ready(0, 0);
    const final = this.#register('end');
    const maxWritten = this.#counts === null ? 0 : Math.min(declared.length, this.#counts.max);
    const mayEndAt = declared.findLastIndex(({ required }) => required) + 1;
    if (mayEndAt === 0 && this.#missing(0) === 0) this.#edge(start, final, EMPTY);
    declared.forEach((member, position) => {
      const value = sequence(colon, this.#context.ruleFor(member.value));
      const key = text(JSON.stringify(member.key));
      for (let written = 0; written <= Math.min(maxWritten, position); written++) {
        const from = this.#ready(position, written);
        if (!member.required) this.#edge(from, this.#ready(position + 1, written), EMPTY);
        const next = this.#counts === null ? 0 : written + 1;
        if (next > maxWritten) continue;
        const done = this.#register(`done ${position}/${next}`);
        this.#edge(from, this.#register(`key ${position}/${next}`), key);
        this.#edge(this.#register(`key ${position}/${next}`), done, value);
        this.#edge(done, this.#ready(position + 1, next), comma);
        if (position + 1 >= mayEndAt && this.#missing(next) === 0) this.#edge(done, final, EMPTY);
      }
    });
    const additional = otherMember(this.#keys.others, this.#context);
    for (let written = 0; written <= Math.min(maxWritten, declared.length); written++) {
      this.#addOthers(this.#ready(declared.length, written), written, additional, final);
    }
    return { kind: 'graph', states: this.#states.size, edges: this.#edges, final };
  }

  #ready(position: number, written: number): number {
    return this.#register(`${position}/${written}`);
  }

  /** How many undeclared members must follow at least; a marked one does. */
  #missing(written: number): number {
    return Math.max(this.#marked === null ? 0 : 1, (this.#counts?.min ?? 0) - written);
  }

  #register(name: string): number {
    const cached = this.#states.get(name);
    if (cached !== undefined) return cached;
    this.#states.set(name, this.#states.size);
    return this.#states.size - 1;
  }

  #edge(from: number, to: number, label: Expression): void {
    this.#context.budget.spend(20);
    this.#edges.push({ from, to, label });
  }

  /** Adds undeclared members. */
  #addOthers(from: number, written: number, additional: Expression | null, final: number): void {
    const least = Math.max(1, this.#missing(written));
    const room = (this.#counts?.max ?? Number.POSITIVE_INFINITY) - written;
    if (additional === null || room < least) return;
    if (this.#marked === null) {
      this.#edge(from, final, sequence(additional, this.#more(additional, least - 1, room - 1)));
      return;
    }
    for (const marked of this.#marked) {
      if (marked.length <= room) this.#addMarked(from, least - marked.length, additional, marked, final);
    }
  }

  /** Adds marked members in their order, with others around them. @param least others that must be written */
  #addMarked(
    from: number,
    least: number,
    additional: Expression,
    marked: MarkedMembers,
    final: number,
  ): void {
    const { comma } = this.#context.json;
    if (this.#counts !== null && Number.isFinite(this.#counts.max)) {
      if (least <= 0) this.#edge(from, final, joined(marked, comma));
      return;
    }
    const others = optional(sequence(additional, this.#more(additional, 0), comma));
    const parts = marked.map((member, i) => (i === 0 ? member : sequence(comma, others, member)));
    this.#edge(from, final, sequence(others, ...parts, this.#more(additional, Math.max(0, least))));
  }

  #more(item: Expression, min: number, max = Number.POSITIVE_INFINITY): Expression {
    return repeat(sequence(this.#context.json.comma, item), min, max);
  }
}

/** Objects whose members are equal share their rules. */
function memberRule({ key, value }: ObjectProperties['declared'][number], context: SchemaContext): number {
  const member = context.ruleFor(value);
  return context.sharedRule(`member ${member.rule} ${key}`, () =>
    sequence(text(JSON.stringify(key)), context.json.colon, member),
  );
}

/** Undeclared members that an object must have, in this order. */
type MarkedMembers = readonly Expression[];

/** More conditions would have too many orders. */
const MAX_CONDITIONS = 4;

/**
 * Undeclared members that satisfy all conditions, as alternatives: one member may satisfy several. Null if
 * there are no conditions.
 */
function markedMembers(
  nodes: KeywordNodes,
  others: ObjectProperties['others'],
  context: SchemaContext,
): readonly MarkedMembers[] | null {
  const marking = nodes.filter(({ schema }) => schema[SOME_PROPERTY]?.key === null);
  if (marking.length === 0) return null;
  if (marking.length > MAX_CONDITIONS)
    throw schemaError(
      marking[0]!.path.replace(/ .*/, ''),
      `at most ${MAX_CONDITIONS} negations may each need an undeclared property`,
    );
  const memberOf = (conditions: readonly SomeProperty[]): Expression | null => {
    const groups = others.map(({ keys, value }) => ({
      keys: conditions.reduce((a, { names }) => both(a, languageOf(names, context), context.languages), keys),
      value: [...value, ...conditions.flatMap((condition) => condition.value)],
    }));
    return otherMember(
      groups.filter(({ keys }) => keys === null || !isEmptyLanguage(keys)),
      context,
    );
  };
  return orderedPartitions(marking.map(({ schema }) => schema[SOME_PROPERTY]!)).flatMap((parts) => {
    const members = parts.map(memberOf);
    return members.every((member) => member !== null) ? [members] : [];
  });
}

/** The ways to part a list into non-empty lists, in every order. */
function orderedPartitions<T>([first, ...rest]: readonly T[]): (readonly T[])[][] {
  if (first === undefined) return [[]];
  return orderedPartitions(rest).flatMap((parts) => [
    ...parts.map((part, i) => parts.with(i, [first, ...part])),
    ...Array.from({ length: parts.length + 1 }, (_, i) => parts.toSpliced(i, 0, [first])),
  ]);
}

/** The rule of members with an undeclared key; null if there are none. */
function otherMember(others: ObjectProperties['others'], context: SchemaContext): RuleReference | null {
  if (others.length === 0) return null;
  const { json } = context;
  const groups = others.map(({ keys, value }) => ({
    key: keys === null ? json.string : context.stringIn(keys),
    value: context.ruleFor(value),
  }));
  const name = groups.map(({ key, value }) => `${key.rule}:${value.rule}`).join();
  const member = context.sharedRule(`other ${name}`, () =>
    choice(groups.map(({ key, value }) => sequence(key, json.colon, value))),
  );
  return rule(member);
}
