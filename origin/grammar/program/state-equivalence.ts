import { Partition } from '../automaton/partition.ts';
import type { StateEquivalence, TransitionNetwork } from './program.ts';

/** Maximum length examined in bytes; longer than the longest token of common vocabularies. */
const MAX_LENGTH = 160;
export const NEVER_DISTINGUISHED = MAX_LENGTH + 1;
/** Maximum number of edges examined, about 100 ms. Beyond it, no states count as equivalent. */
const MAX_EDGES = 1_000_000;

/**
 * Refines a partition of the states: round n splits states that texts of n bytes distinguish. A state is
 * examined again only if one of its targets was split off as the smaller part. A chain of any length thus
 * costs little more than one pass.
 */
export function stateEquivalence(network: TransitionNetwork): StateEquivalence {
  const size = network.ruleOf.length;
  const partition = new Partition(size);
  partition.groupBy(Array.from(network.ruleOf, (rule, state) => 2 * rule + network.final[state]!));
  const distinguishedAt = new Int32Array(size + 1);
  let edges = network.byteEdges.length / 3 + network.callEdges.length / 2;
  if (edges > MAX_EDGES) return { ...orderOf(partition), distinguishedAt };
  distinguishedAt.fill(NEVER_DISTINGUISHED, 0, size);
  for (let set = 0; set < partition.sets; set++) distinguishedAt[partition.start[set]!] = 0;
  const predecessors = predecessorsOf(network);
  let affected: Iterable<number> = network.ruleOf.keys();
  for (let length = 1; length <= MAX_LENGTH; length++) {
    const groups = new Map<string, number[]>();
    for (const state of affected) {
      edges += edgeCount(network, state);
      const key = signature(network, partition, state);
      const group = groups.get(key);
      if (group) group.push(state);
      else groups.set(key, [state]);
    }
    const separated = separate(partition, groups.values(), distinguishedAt, length);
    if (separated.length === 0) break;
    if (edges > MAX_EDGES) return { ...orderOf(partition), distinguishedAt: distinguishedAt.fill(0) };
    affected = new Set(separated.flatMap((state) => predecessors[state]!));
  }
  return { ...orderOf(partition), distinguishedAt };
}

/** Splits each group off its set. Returns the states of the new sets. */
function separate(
  partition: Partition,
  groups: Iterable<readonly number[]>,
  distinguishedAt: Int32Array,
  length: number,
): number[] {
  const before = partition.sets;
  for (const group of groups) {
    for (const state of group) partition.mark(state);
    partition.split();
  }
  const separated: number[] = [];
  for (let set = before; set < partition.sets; set++) {
    // One of the two ends is the new boundary; the other one is older.
    for (const end of [partition.start[set]!, partition.end[set]!]) {
      if (distinguishedAt[end] === NEVER_DISTINGUISHED) distinguishedAt[end] = length;
    }
    for (let i = partition.start[set]!; i < partition.end[set]!; i++) separated.push(partition.elements[i]!);
  }
  return separated;
}

/** A key that is equal for states of one set whose edges lead to the same sets. */
function signature(network: TransitionNetwork, { setOf }: Partition, state: number): string {
  const { byteOffsets, byteEdges, callOffsets, callEdges } = network;
  let key = `${setOf[state]}`;
  for (let i = byteOffsets[state]!; i < byteOffsets[state + 1]!; i += 3) {
    key += ` ${byteEdges[i]}-${byteEdges[i + 1]}:${setOf[byteEdges[i + 2]!]}`;
  }
  for (let i = callOffsets[state]!; i < callOffsets[state + 1]!; i += 2) {
    key += ` ${callEdges[i]}>${setOf[callEdges[i + 1]!]}`;
  }
  return key;
}

function edgeCount({ byteOffsets, callOffsets }: TransitionNetwork, state: number): number {
  const bytes = byteOffsets[state + 1]! - byteOffsets[state]!;
  return 1 + bytes / 3 + (callOffsets[state + 1]! - callOffsets[state]!) / 2;
}

function predecessorsOf({
  ruleOf,
  byteOffsets,
  byteEdges,
  callOffsets,
  callEdges,
}: TransitionNetwork): number[][] {
  const predecessors: number[][] = Array.from(ruleOf, () => []);
  for (let state = 0; state < ruleOf.length; state++) {
    for (let i = byteOffsets[state]!; i < byteOffsets[state + 1]!; i += 3) {
      predecessors[byteEdges[i + 2]!]!.push(state);
    }
    for (let i = callOffsets[state]!; i < callOffsets[state + 1]!; i += 2) {
      predecessors[callEdges[i + 1]!]!.push(state);
    }
  }
  return predecessors;
}

function orderOf({ elements }: Partition): Pick<StateEquivalence, 'order' | 'position'> {
  const position = new Int32Array(elements.length);
  elements.forEach((state, i) => {
    position[state] = i;
  });
  return { order: elements, position };
}
