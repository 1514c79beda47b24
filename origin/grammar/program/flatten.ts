import type { Dfa } from '../automaton/dfa.ts';
import { CALL } from '../automaton/nfa.ts';
import type { Program } from './program.ts';
import { likenessOf } from './state-equivalence.ts';

/** Lays the automata of all rules end to end. Rules are renumbered in the order of the map; the first is the root. */
export function flatten(automata: ReadonlyMap<number, Dfa>, matchesEmpty: boolean): Program {
  const names = new Map([...automata.keys()].map((rule, index) => [rule, index]));
  const { classOf, classCount } = byteClasses([...automata.values()]);
  const ruleStart: number[] = [];
  const ruleOf: number[] = [];
  const final: number[] = [];
  const byteOffsets = [0];
  const byteEdges: number[] = [];
  const callOffsets = [0];
  const callEdges: number[] = [];
  for (const [rule, dfa] of automata) {
    const base = ruleOf.length;
    ruleStart.push(base);
    dfa.edges.forEach((edges, state) => {
      for (let i = 0; i < edges.length; i += 3) {
        const target = base + edges[i + 2]!;
        if (edges[i]! >= CALL) callEdges.push(names.get(edges[i]! - CALL)!, target);
        else byteEdges.push(classOf[edges[i]!]!, classOf[edges[i + 1]!]!, target);
      }
      ruleOf.push(names.get(rule)!);
      final.push(dfa.final[state]!);
      byteOffsets.push(byteEdges.length);
      callOffsets.push(callEdges.length);
    });
  }
  const network = {
    classOf,
    classCount,
    ruleStart: new Int32Array(ruleStart),
    ruleOf: new Int32Array(ruleOf),
    final: new Uint8Array(final),
    byteOffsets: new Int32Array(byteOffsets),
    byteEdges: new Int32Array(byteEdges),
    callOffsets: new Int32Array(callOffsets),
    callEdges: new Int32Array(callEdges),
    matchesEmpty,
  };
  return { ...network, likeness: likenessOf(network) };
}

/** Classes are the pieces between all edge boundaries, numbered in byte order: edges stay ranges. */
function byteClasses(automata: readonly Dfa[]): { classOf: Uint8Array; classCount: number } {
  const cut = new Uint8Array(257);
  for (const { edges } of automata) {
    for (const list of edges) {
      for (let i = 0; i < list.length; i += 3) {
        if (list[i]! >= CALL) continue;
        cut[list[i]!] = 1;
        cut[list[i + 1]! + 1] = 1;
      }
    }
  }
  const classOf = new Uint8Array(256);
  let current = 0;
  for (let byte = 1; byte < 256; byte++) classOf[byte] = cut[byte] === 1 ? ++current : current;
  return { classOf, classCount: current + 1 };
}
