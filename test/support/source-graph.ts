import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** Folders of the workspaces by package name, nested ones first. */
export const WORKSPACES: Readonly<Record<string, string>> = {
  '@continuo/site': 'worker/site',
  '@continuo/limits': 'worker/limits',
  '@continuo/cli': 'origin/cli',
  '@continuo/export': 'origin/export',
  '@continuo/grammar': 'origin/grammar',
  '@continuo/worker': 'worker',
  '@continuo/origin': 'origin',
  '@continuo/shared': 'shared',
};

/** Returns the workspace that a file belongs to. */
export const workspaceOf = (file: string): string | undefined =>
  Object.keys(WORKSPACES).find((name) => file.startsWith(`${WORKSPACES[name]}/`));

/** Returns the path from the root of a file that is imported by the name of its package; else null. */
export function fileOfPackage(specifier: string): string | null {
  const [, name = '', file = ''] = /^(@continuo\/[^/]+)\/(.+)$/.exec(specifier) ?? [];
  const folder = WORKSPACES[name];
  return folder === undefined ? null : `${folder}/${file}`;
}

/** One source file with its imports, type imports included. */
export interface SourceFile {
  readonly file: string;
  readonly text: string;
  /** Relative specifiers and workspaces become paths from the root; others stay as written. */
  readonly imports: readonly string[];
}

/** Edges from each node to the nodes that it imports. */
export type Graph = ReadonlyMap<string, ReadonlySet<string>>;

const IMPORT =
  /(?:^|\n)\s*(?:import|export)\b[^'"`;]*?\bfrom\s*['"]([^'"]+)['"]|(?:^|\n)\s*import\s*['"]([^'"]+)['"]|\b(?:import|import\.meta\.resolve|require\.resolve)\(\s*['"]([^'"]+)['"]\s*\)/g;

export function parseSource(file: string, text: string): SourceFile {
  const resolve = (name: string) =>
    name.startsWith('.') ? path.posix.join(path.posix.dirname(file), name) : (fileOfPackage(name) ?? name);
  const imports = [...text.matchAll(IMPORT)].map((match) => resolve((match[1] ?? match[2] ?? match[3])!));
  return { file, text, imports };
}

export const readSources = (pattern: string): SourceFile[] =>
  globSync(pattern)
    .toSorted()
    .map((file) => parseSource(file, readFileSync(file, 'utf8')));

/** Returns the import graph. `nodeOf` maps files to nodes, such as folders; a node has no edge to itself. */
export function graphOf(sources: readonly SourceFile[], nodeOf: (file: string) => string): Graph {
  const files = new Set(sources.map(({ file }) => file));
  const graph = new Map<string, Set<string>>();
  for (const { file, imports } of sources) {
    const from = nodeOf(file);
    const targets = graph.get(from) ?? new Set();
    graph.set(from, targets);
    for (const name of imports) if (files.has(name) && nodeOf(name) !== from) targets.add(nodeOf(name));
  }
  return graph;
}

/** Returns the folders in the first column of the table "The map" in docs/architecture.md. */
export function foldersOfMap(architecture: string): readonly string[] {
  const [, map = ''] = architecture.split('## The map');
  const rows = map.split('\n## ')[0]!.matchAll(/^\|([^|]+)\|/gm);
  return [...rows].flatMap(([, names]) => [...names!.matchAll(/`([^`]+)\/`/g)].map(([, folder]) => folder!));
}

/** Maps a file to the longest of these folders that contains it; null if it is in none. */
export const mapNode =
  (folders: readonly string[]) =>
  (file: string): string | null =>
    folders.filter((folder) => file.startsWith(`${folder}/`)).toSorted((a, b) => b.length - a.length)[0] ??
    null;

/**
 * Maps a file to its folder. A file next to subfolders is a separate node, so that a folder's entry point may
 * import the subfolders while they import its leaves.
 */
export function folderNodes(sources: readonly SourceFile[]): (file: string) => string {
  const folders = new Set(sources.map(({ file }) => path.posix.dirname(file)));
  const parents = new Set([...folders].map((folder) => path.posix.dirname(folder)));
  return (file) => {
    const folder = path.posix.dirname(file);
    return parents.has(folder) ? file : folder;
  };
}

/** Returns one cycle as a list that ends with its first node, or null. */
export function findCycle(graph: Graph): readonly string[] | null {
  const done = new Set<string>();
  const visit = (node: string, trail: readonly string[]): readonly string[] | null => {
    if (trail.includes(node)) return [...trail.slice(trail.indexOf(node)), node];
    if (done.has(node)) return null;
    for (const next of graph.get(node) ?? []) {
      const cycle = visit(next, [...trail, node]);
      if (cycle !== null) return cycle;
    }
    done.add(node);
    return null;
  };
  for (const node of graph.keys()) {
    const cycle = visit(node, []);
    if (cycle !== null) return cycle;
  }
  return null;
}

/** Returns the edges that the list does not allow, and listed ones without imports, as "from → to". */
export function compareEdges(
  graph: Graph,
  allowed: Readonly<Record<string, readonly string[]>>,
): { readonly forbidden: readonly string[]; readonly unused: readonly string[] } {
  const edges = [...graph].flatMap(([from, targets]) => [...targets].map((to) => `${from} → ${to}`));
  const listed = Object.entries(allowed).flatMap(([from, targets]) => targets.map((to) => `${from} → ${to}`));
  return {
    forbidden: edges.filter((edge) => !listed.includes(edge)).toSorted(),
    unused: listed.filter((edge) => !edges.includes(edge)).toSorted(),
  };
}
