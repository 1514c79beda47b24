import type { Dfa } from '../automaton/dfa.ts';
import type { WorkBudget } from '../automaton/work-budget.ts';

const FIELDS: Readonly<Record<string, (value: unknown) => readonly string[] | null>> = {
  substring_chunks: (value) =>
    Array.isArray(value) && value.every((chunk) => typeof chunk === 'string') ? value : null,
  substring_words: (value) =>
    typeof value === 'string'
      ? [...value.matchAll(/\s+|[\p{Alphabetic}\p{N}_]+|[^\s\p{Alphabetic}\p{N}_]+/gu)].map(([word]) => word)
      : null,
  substring_chars: (value) => (typeof value === 'string' ? Array.from(value) : null),
};

/** The chunks that a `%regex {…}` names, or a message that says what is wrong. */
export function substringChunks(value: object): readonly string[] | string {
  const entries = Object.entries(value);
  if (entries.length !== 1) return '%regex needs exactly one field';
  const [name, field] = entries[0]!;
  if (!Object.hasOwn(FIELDS, name)) return `%regex has no field "${name}"`;
  const chunks = FIELDS[name]!(field);
  if (chunks === null) return `The value of "${name}" has the wrong type`;
  return chunks.every((chunk) => chunk.isWellFormed()) ? chunks : 'A lone surrogate cannot be encoded';
}

/** A state of a suffix automaton. */
interface SuffixState {
  readonly length: number;
  link: number;
  readonly next: Map<string, number>;
}

/**
 * An automaton over code points for all runs of consecutive chunks, also the empty one. Source: Blumer et
 * al., "The smallest automaton recognizing the subwords of a text", 1985. At most two states per chunk. It is
 * nondeterministic where one chunk begins like another.
 */
export function substringAutomaton(chunks: readonly string[], budget: WorkBudget): Dfa {
  const states = suffixStates(
    chunks.filter((chunk) => chunk !== ''),
    budget,
  );
  const edges: number[][] = states.map(() => []);
  states.forEach(({ next }, from) => {
    // Chunks with the same beginning share states.
    const paths = new Map<string, number>();
    for (const [chunk, to] of next) {
      const characters = Array.from(chunk);
      let state = from;
      characters.forEach((char, i) => {
        budget.spend(30);
        const codePoint = char.codePointAt(0)!;
        const isLast = i === characters.length - 1;
        const prefix = characters.slice(0, i + 1).join('');
        let target = isLast ? to : paths.get(prefix);
        if (isLast || target === undefined) {
          target ??= edges.push([]) - 1;
          edges[state]!.push(codePoint, codePoint, target);
          if (!isLast) paths.set(prefix, target);
        }
        state = target;
      });
    }
  });
  return { edges, final: Uint8Array.from(edges, (_, state) => (state < states.length ? 1 : 0)) };
}

function suffixStates(chunks: readonly string[], budget: WorkBudget): SuffixState[] {
  const states: SuffixState[] = [{ length: 0, link: -1, next: new Map() }];
  let last = 0;
  for (const chunk of chunks) {
    const current = states.push({ length: states[last]!.length + 1, link: 0, next: new Map() }) - 1;
    let at = last;
    for (; at !== -1 && !states[at]!.next.has(chunk); at = states[at]!.link) {
      budget.spend(20);
      states[at]!.next.set(chunk, current);
    }
    if (at !== -1) states[current]!.link = linkOf(states, at, chunk, budget);
    last = current;
  }
  return states;
}

/** The state of the longest suffix that occurred before. Splits a state that also stands for longer texts. */
function linkOf(states: SuffixState[], from: number, chunk: string, budget: WorkBudget): number {
  const target = states[from]!.next.get(chunk)!;
  const { length, next, link } = states[target]!;
  if (states[from]!.length + 1 === length) return target;
  budget.spend(20 + 10 * next.size);
  const clone = states.push({ length: states[from]!.length + 1, link, next: new Map(next) }) - 1;
  for (let at = from; at !== -1 && states[at]!.next.get(chunk) === target; at = states[at]!.link)
    states[at]!.next.set(chunk, clone);
  states[target]!.link = clone;
  return clone;
}
