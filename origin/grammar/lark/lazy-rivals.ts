import type { WorkBudget } from '../automaton/work-budget.ts';
import { isTerminal, type LarkDefinition, type LarkGrammar, type LarkNode } from './lark-grammar.ts';
import type { Terminals } from './terminals.ts';

/** A terminal where it occurs in a rule, or a lazy rule. */
export type Occurrence = LarkNode | LarkDefinition;

/** By occurrence: the lazy rules that may begin where it begins. A lazy rule wins as soon as it matches. */
export type LazyRivals = ReadonlyMap<Occurrence, ReadonlySet<LarkDefinition>>;

/** What may begin a node, and whether the node may be empty. */
interface Beginning {
  readonly first: ReadonlySet<Occurrence>;
  readonly nullable: boolean;
}

/**
 * Finds the rivals of all occurrences. What may follow a rule is the union over its uses, so rivals are found
 * that some of the uses do not have.
 */
export function lazyRivals(
  { definitions }: LarkGrammar,
  terminals: Terminals,
  budget: WorkBudget,
): LazyRivals {
  const isUsed = [...definitions.values()].some(({ lazy }) => lazy !== null);
  return isUsed ? new RivalSearch(definitions, terminals, budget).search() : new Map();
}

class RivalSearch {
  readonly #definitions: LarkGrammar['definitions'];
  readonly #terminals: Terminals;
  readonly #budget: WorkBudget;
  readonly #beginnings = new Map<string, Beginning>();
  readonly #followers = new Map<string, Set<Occurrence>>();
  readonly #rivals = new Map<Occurrence, Set<LarkDefinition>>();
  #changed = false;

  constructor(definitions: LarkGrammar['definitions'], terminals: Terminals, budget: WorkBudget) {
    this.#definitions = definitions;
    this.#terminals = terminals;
    this.#budget = budget;
  }

  search(): LazyRivals {
    const rules = [...this.#definitions.values()].filter(
      ({ name, lazy }) => !isTerminal(name) && lazy === null,
    );
    this.#untilStable(() => {
      for (const { name, body } of rules) {
        const before = this.#beginnings.get(name);
        const after = this.#beginning(body);
        const isNew = before?.first.size !== after.first.size || before.nullable !== after.nullable;
        this.#changed ||= isNew;
        this.#beginnings.set(name, after);
      }
    });
    this.#untilStable(() => {
      for (const { name, body } of rules) this.#visit(body, this.#followers.get(name) ?? new Set());
    });
    return this.#rivals;
  }

  #untilStable(pass: () => void): void {
    do {
      this.#changed = false;
      pass();
    } while (this.#changed);
  }

  /** The lazy rule that a node calls, or the node itself if it is a terminal; null for others. */
  #occurrence(node: LarkNode): Occurrence | null {
    if (node.kind === 'name') {
      if (isTerminal(node.name)) return node;
      const called = this.#definitions.get(node.name);
      return called && called.lazy !== null ? called : null;
    }
    return ['string', 'regex', 'range', 'substring'].includes(node.kind) ? node : null;
  }

  #beginning(node: LarkNode): Beginning {
    this.#budget.spend(30);
    const occurrence = this.#occurrence(node);
    if (occurrence !== null) {
      const nullable = 'body' in occurrence ? false : this.#terminals.mayBeEmpty(occurrence);
      return { first: new Set([occurrence]), nullable };
    }
    switch (node.kind) {
      case 'name':
        return this.#beginnings.get(node.name) ?? { first: new Set(), nullable: false };
      case 'choice': {
        const parts = node.items.map((item) => this.#beginning(item));
        return {
          first: new Set(parts.flatMap(({ first }) => [...first])),
          nullable: parts.some(({ nullable }) => nullable),
        };
      }
      case 'sequence':
        return node.items.reduceRight<Beginning>((rest, item) => this.#before(this.#beginning(item), rest), {
          first: new Set(),
          nullable: true,
        });
      case 'repeat': {
        const { first, nullable } = this.#beginning(node.item);
        return { first, nullable: nullable || node.min === 0 };
      }
      default:
        return { first: new Set(), nullable: false };
    }
  }

  #before(item: Beginning, rest: Beginning): Beginning {
    this.#budget.spend(item.first.size + rest.first.size);
    return {
      first: item.nullable ? new Set([...item.first, ...rest.first]) : item.first,
      nullable: item.nullable && rest.nullable,
    };
  }

  /** @param followers what may begin after the node */
  #visit(node: LarkNode, followers: ReadonlySet<Occurrence>): void {
    this.#compete(this.#before(this.#beginning(node), { first: followers, nullable: false }).first);
    switch (node.kind) {
      case 'name':
        this.#addFollowers(node.name, followers);
        return;
      case 'choice':
        for (const item of node.items) this.#visit(item, followers);
        return;
      case 'sequence': {
        let rest: Beginning = { first: followers, nullable: false };
        for (const item of node.items.toReversed()) {
          this.#visit(item, rest.first);
          rest = this.#before(this.#beginning(item), rest);
        }
        return;
      }
      case 'repeat': {
        const again = node.max > 1 ? this.#beginning(node.item).first : [];
        this.#visit(node.item, new Set([...followers, ...again]));
      }
    }
  }

  #addFollowers(name: string, followers: ReadonlySet<Occurrence>): void {
    const followersOfName = this.#followers.get(name) ?? new Set();
    const size = followersOfName.size;
    for (const follower of followers) followersOfName.add(follower);
    this.#changed ||= followersOfName.size > size;
    this.#followers.set(name, followersOfName);
  }

  /** All of these may begin at one place. */
  #compete(occurrences: ReadonlySet<Occurrence>): void {
    for (const rival of occurrences) {
      if (!('body' in rival)) continue;
      this.#budget.spend(5 * occurrences.size);
      for (const occurrence of occurrences) {
        if (occurrence === rival) continue;
        const rivals = this.#rivals.get(occurrence) ?? new Set();
        this.#rivals.set(occurrence, rivals.add(rival));
      }
    }
  }
}
