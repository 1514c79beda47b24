import { ALL_CODE_POINTS } from '../automaton/code-points.ts';
import { determinize } from '../automaton/determinize.ts';
import { appendEdge, complement, type Dfa, isEmptyLanguage, step, trim } from '../automaton/dfa.ts';
import { CALL, Nfa } from '../automaton/nfa.ts';
import { BudgetExceeded, type WorkBudget } from '../automaton/work-budget.ts';
import type { LookAround, RegexNode } from './regex-parser.ts';

/** What is known of the text around an expression. */
export interface Surroundings {
  /** What may come before the expression. */
  readonly before: 'nothing' | 'something' | 'anything';
  /** Whether nothing comes after the expression. */
  readonly ends: boolean;
  /** Whether `^` and `$` stand for the ends of the expression, whatever surrounds it. */
  readonly anchored: boolean;
}

const MAX_STATES = 10_000;
const ANY: RegexNode = { kind: 'chars', set: ALL_CODE_POINTS };
export const ANYTHING: RegexNode = { kind: 'repeat', item: ANY, min: 0, max: Number.POSITIVE_INFINITY };
const SCALAR_VALUES = 0x110000 - 0x800;

/** `^` and `$` as look-arounds. */
export function anchorAsLook({ at, unprovable }: RegexNode & { readonly kind: 'anchor' }): LookAround {
  return { kind: 'look', ahead: at === 'end', negative: true, item: ANY, unprovable };
}

/** What decides a look-around. */
interface Decider {
  readonly look: LookAround;
  /** Accepts the text before the position, or the text after it. */
  readonly dfa: Dfa;
  /** Behind: states that the text before may have led to at the start. */
  readonly initial: readonly number[];
  /** Ahead: whether nothing comes after the expression. */
  readonly ends: boolean;
  /** Ahead: per state, 1 if every text is accepted. */
  readonly certain: Uint8Array;
}

/** A state of the product. */
interface ProductState {
  readonly state: number;
  /** Whether a character was read; always false if no look-ahead depends on it. */
  readonly read: boolean;
  /** By look-around: the states that the decider of a look-behind may be in, sorted. */
  readonly behind: readonly (readonly number[])[];
  /** Look-aheads that the rest of the text must satisfy, as decider and state; sorted. */
  readonly ahead: readonly (readonly [decider: number, state: number])[];
}

/**
 * Removes the look-arounds of an automaton, edges of the symbols CALL + i. Runs the automata of all
 * look-behinds along with it, and those of the look-aheads that were passed.
 * @param automatonOf builds the automaton of an expression between these surroundings
 * @throws GrammarError if text outside decides
 */
export function resolveLookArounds(
  nfa: Nfa,
  looks: readonly LookAround[],
  around: Surroundings,
  automatonOf: (node: RegexNode, around: Surroundings) => Nfa,
  budget: WorkBudget,
): Nfa {
  const decide = (look: LookAround, before: Surroundings['before']): Decider =>
    deciderOf(look, { ...around, before }, automatonOf, budget);
  return new Product(nfa, looks, around.before, decide, budget).build();
}

function deciderOf(
  look: LookAround,
  around: Surroundings,
  automatonOf: (node: RegexNode, around: Surroundings) => Nfa,
  budget: WorkBudget,
): Decider {
  const { item, ahead, negative } = look;
  const isFree = item === ANY && around.anchored;
  const before = isFree ? 'nothing' : around.before;
  const ends = isFree || around.ends;
  const inner = automatonOf(
    { kind: 'sequence', items: ahead ? [item, ANYTHING] : [ANYTHING, item] },
    { before, ends: ahead && ends, anchored: false },
  );
  const matches = determinize(inner, { budget, maxStates: MAX_STATES, nonEmpty: false });
  if (matches === null) throw new BudgetExceeded();
  const dfa = ahead && negative ? complement(trim(matches)) : trim(matches);
  return { look, dfa, initial: initialStates(dfa, before), ends, certain: certainStates(dfa, budget) };
}

function initialStates({ edges }: Dfa, before: Surroundings['before']): number[] {
  if (before === 'nothing') return [0];
  if (before === 'anything') return Array.from(edges.keys());
  const reached = new Set(edges.flatMap((list) => list.filter((_, i) => i % 3 === 2)));
  return [...reached].sort((a, b) => a - b);
}

/** Whether the text before the position may decide. */
function looksBehind(node: RegexNode): boolean {
  if (node.kind === 'sequence' || node.kind === 'choice') return node.items.some(looksBehind);
  if (node.kind === 'look') return !node.ahead || looksBehind(node.item);
  return node.kind === 'repeat' ? looksBehind(node.item) : node.kind === 'anchor';
}

/** The states that accept every text: the greatest set of final states whose edges all stay in it. */
function certainStates({ edges, final }: Dfa, budget: WorkBudget): Uint8Array {
  const certain = final.slice();
  for (let changed = true; changed; ) {
    changed = false;
    edges.forEach((list, state) => {
      budget.spend(5 + list.length);
      let covered = 0;
      for (let i = 0; i < list.length; i += 3)
        if (certain[list[i + 2]!] === 1) covered += list[i + 1]! - list[i]! + 1;
      if (certain[state] === 1 && covered < SCALAR_VALUES) {
        certain[state] = 0;
        changed = true;
      }
    });
  }
  return certain;
}

class Product {
  readonly #nfa: Nfa;
  readonly #looks: readonly LookAround[];
  readonly #before: Surroundings['before'];
  readonly #decide: (look: LookAround, before: Surroundings['before']) => Decider;
  readonly #budget: WorkBudget;
  readonly #out: Nfa;
  readonly #names = new Map<string, number>();
  readonly #queue: [ProductState, number][] = [];
  readonly #deciders: Decider[] = [];
  /** Numbers of deciders by look-around and what may come before it. */
  readonly #indices = new Map<string, number>();
  /** Whether look-aheads differ at the start of the text. */
  readonly #startMatters: boolean;

  constructor(
    nfa: Nfa,
    looks: readonly LookAround[],
    before: Surroundings['before'],
    decide: (look: LookAround, before: Surroundings['before']) => Decider,
    budget: WorkBudget,
  ) {
    this.#nfa = nfa;
    this.#looks = looks;
    this.#before = before;
    this.#decide = decide;
    this.#budget = budget;
    this.#out = new Nfa(budget);
    this.#startMatters = looks.some(({ ahead, item }) => ahead && looksBehind(item));
  }

  build(): Nfa {
    const behind = this.#looks.map(({ ahead }, index) =>
      ahead ? [] : this.#deciders[this.#decider(index, false)]!.initial,
    );
    const first: ProductState = { state: this.#nfa.start, read: false, behind, ahead: [] };
    this.#out.addEpsilon(this.#out.start, this.#name(first));
    for (let next = this.#queue.pop(); next !== undefined; next = this.#queue.pop()) this.#expand(...next);
    return this.#out;
  }

  #decider(index: number, read: boolean): number {
    const look = this.#looks[index]!;
    const isFixed = look.ahead && !looksBehind(look.item);
    const before = isFixed ? 'anything' : read ? 'something' : this.#before;
    const key = `${index} ${before}`;
    let decider = this.#indices.get(key);
    if (decider === undefined) {
      decider = this.#deciders.push(this.#decide(look, before)) - 1;
      this.#indices.set(key, decider);
    }
    return decider;
  }

  #name(product: ProductState): number {
    const key = `${product.state} ${product.read} ${product.behind.join(';')} ${product.ahead.join(';')}`;
    let name = this.#names.get(key);
    this.#budget.spend(20 + key.length);
    if (name === undefined) {
      name = this.#out.addState();
      this.#names.set(key, name);
      this.#queue.push([product, name]);
    }
    return name;
  }

  #expand(product: ProductState, name: number): void {
    const { state } = product;
    if (state === this.#nfa.end && this.#endsHere(product)) this.#out.addEpsilon(name, this.#out.end);
    for (const next of this.#nfa.epsilon[state]!) {
      this.#out.addEpsilon(name, this.#name({ ...product, state: next }));
    }
    const edges = this.#nfa.edges[state]!;
    for (let i = 0; i < edges.length; i += 3) {
      const [lo, hi, to] = [edges[i]!, edges[i + 1]!, edges[i + 2]!];
      if (lo < CALL) this.#read(product, name, lo, hi, to);
      else this.#look(product, name, lo - CALL, to);
    }
  }

  #endsHere({ ahead }: ProductState): boolean {
    return ahead.every(([index, state]) => {
      const { look, dfa, ends } = this.#deciders[index]!;
      if (!ends) throw look.unprovable;
      return dfa.final[state] === 1;
    });
  }

  #look(product: ProductState, name: number, index: number, to: number): void {
    const decider = this.#decider(index, product.read && this.#looks[index]!.ahead);
    const { look, dfa, certain } = this.#deciders[decider]!;
    if (look.ahead) {
      if (isEmptyLanguage(dfa)) return;
      const ahead = certain[0] === 1 ? product.ahead : sortPairs([...product.ahead, [decider, 0]]);
      this.#out.addEpsilon(name, this.#name({ ...product, state: to, ahead }));
      return;
    }
    const states = product.behind[index]!;
    const matches = states.filter((state) => dfa.final[state] === 1).length;
    if (matches > 0 && matches < states.length) throw look.unprovable;
    if (matches > 0 !== look.negative) this.#out.addEpsilon(name, this.#name({ ...product, state: to }));
  }

  /** Splits the range where an automaton that runs along distinguishes. */
  #read(product: ProductState, name: number, lo: number, hi: number, to: number): void {
    const lists = [
      ...product.behind.flatMap((states, i) => states.map((state) => this.#behind(i).edges[state]!)),
      ...product.ahead.map(([i, state]) => this.#deciders[i]!.dfa.edges[state]!),
    ];
    const cuts = new Set([lo, hi + 1]);
    for (const list of lists) {
      this.#budget.spend(list.length);
      for (let i = 0; i < list.length; i += 3) {
        if (list[i]! > lo && list[i]! <= hi) cuts.add(list[i]!);
        if (list[i + 1]! >= lo && list[i + 1]! < hi) cuts.add(list[i + 1]! + 1);
      }
    }
    const sorted = [...cuts].sort((a, b) => a - b);
    const out: number[] = [];
    for (let i = 0; i + 1 < sorted.length; i++) {
      const next = this.#afterCharacter(product, sorted[i]!, to);
      if (next !== null) appendEdge(out, sorted[i]!, sorted[i + 1]! - 1, this.#name(next));
    }
    for (let i = 0; i < out.length; i += 3) this.#out.addEdge(name, out[i]!, out[i + 1]!, out[i + 2]!);
  }

  #afterCharacter(product: ProductState, char: number, to: number): ProductState | null {
    const ahead: [number, number][] = [];
    for (const [index, state] of product.ahead) {
      const { dfa, certain } = this.#deciders[index]!;
      const next = step(dfa, state, char);
      if (next === -1) return null;
      if (certain[next] === 0) ahead.push([index, next]);
    }
    const behind = product.behind.map((states, index) => {
      const next = new Set(states.map((state) => step(this.#behind(index), state, char)));
      return [...next].filter((state) => state !== -1).sort((a, b) => a - b);
    });
    return { state: to, read: this.#startMatters, behind, ahead: sortPairs(ahead) };
  }

  #behind(index: number): Dfa {
    return this.#deciders[this.#decider(index, false)]!.dfa;
  }
}

function sortPairs(pairs: (readonly [number, number])[]): (readonly [number, number])[] {
  const unique = new Map(pairs.map((pair) => [pair.join(), pair]));
  return [...unique.values()].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
}
