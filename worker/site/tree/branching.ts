import { type Signal, signal } from '@preact/signals';
import type { Connection } from '../api/client.ts';
import type { RequestFailure } from '../api/request-failure.ts';
import { requestChoices, WholeChoices } from '../api/whole-choices.ts';
import { type NodeId, type Tree, textTo } from './tree.ts';
import type { TreeEditor } from './tree-editor.ts';
import { addChildren, growNodes, type NewNode, prune } from './tree-edits.ts';

/** One request for branches. */
export interface BranchRequest {
  readonly connection: Connection;
  readonly model: string;
  /** Number of branches. */
  readonly n: number;
  /** Further request fields. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** A node, and the tree in which it exists: the editor's own, or one that was cut for it. */
export interface BranchPlace {
  readonly tree: Tree;
  readonly id: NodeId;
}

export interface Branching {
  /** Nodes that still grow. */
  readonly growing: Signal<ReadonlySet<NodeId>>;
  /** Why the last request failed, and how to send it again. */
  readonly failed: Signal<{ readonly failure: RequestFailure; readonly retry: () => void } | null>;
  /** Adds n branches to a node and selects it. Resolves when they are complete, stopped or failed. */
  branch(editor: TreeEditor, place: BranchPlace, request: BranchRequest): Promise<void>;
  readonly stop: () => void;
}

export function createBranching(): Branching {
  const growing = signal<ReadonlySet<NodeId>>(new Set());
  const failed = signal<Branching['failed']['value']>(null);
  let stopping = new AbortController();

  async function branch(editor: TreeEditor, place: BranchPlace, request: BranchRequest): Promise<void> {
    failed.value = null;
    const { signal } = stopping;
    const { tree, id } = place;
    const ids = Array.from({ length: request.n }, (_, index) => tree.nextId + index);
    growing.value = new Set([...growing.peek(), ...ids]);
    const nodes = (arrived: WholeChoices) =>
      ids.map((_, index) => generatedNode(arrived, index, request.model));
    editor.edit(() => addChildren(tree, id, nodes(new WholeChoices(ids.length))), id);
    const show = (arrived: WholeChoices) => {
      const grown = new Map(nodes(arrived).map((node, index) => [ids[index]!, node]));
      editor.rewrite((tree) => growNodes(tree, grown));
    };
    const { connection, model, n, parameters } = request;
    const body = { ...parameters, model, n, prompt: textTo(tree, id) };
    const failure = await requestChoices(connection, body, signal, show);
    editor.rewrite((tree) => ids.reduce(withoutEmpty, tree));
    growing.value = new Set([...growing.peek()].filter((id) => !ids.includes(id)));
    if (failure) failed.value = { failure, retry: () => branchAgain(editor, id, request) };
  }

  function branchAgain(editor: TreeEditor, id: NodeId, request: BranchRequest): void {
    const { tree } = editor.position.peek();
    failed.value = null;
    if (tree.nodes.has(id)) void branch(editor, { tree, id }, request);
  }

  return {
    growing,
    failed,
    branch,
    stop: () => {
      stopping.abort();
      stopping = new AbortController();
    },
  };
}

function generatedNode({ choices, usage }: WholeChoices, index: number, model: string): NewNode {
  const { text, tokens, finishReason } = choices[index]!;
  const { promptTokens = null, cachedTokens = null } = usage ?? {};
  return { text, tokens, generation: { model, finishReason, promptTokens, cachedTokens } };
}

/** Removes a node for which nothing has arrived. */
function withoutEmpty(tree: Tree, id: NodeId): Tree {
  const node = tree.nodes.get(id);
  const isEmpty = node?.text === '' && node.children.length === 0 && node.generation?.finishReason === null;
  return isEmpty ? prune(tree, id) : tree;
}
