import { type Signal, signal } from '@preact/signals';
import type { Connection } from '../api/client.ts';
import { type StreamUpdate, streamCompletion } from '../api/completion-stream.ts';
import { RequestFailure } from '../api/request-failure.ts';
import { type NodeId, type Tree, textTo } from './tree.ts';
import type { TreeEditor } from './tree-editor.ts';
import { addChildren, type Growth, growNodes, prune } from './tree-edits.ts';

/** One request for branches. */
export interface BranchRequest {
  readonly connection: Connection;
  readonly model: string;
  /** Number of branches. */
  readonly n: number;
  /** Further request fields. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

export interface Branching {
  /** Nodes that still grow. */
  readonly growing: Signal<ReadonlySet<NodeId>>;
  /** Why the last request failed, and how to send it again. */
  readonly failed: Signal<{ readonly failure: RequestFailure; readonly retry: () => void } | null>;
  /** Adds n branches to a node. Resolves when they are complete, stopped or failed. */
  branch(editor: TreeEditor, parent: NodeId, request: BranchRequest): Promise<void>;
  stop(): void;
}

/** Time between two updates of the tree, in milliseconds: figures that change more often cannot be read. */
const UPDATE_MS = 100;

export function createBranching(): Branching {
  const growing = signal<ReadonlySet<NodeId>>(new Set());
  const failed = signal<Branching['failed']['value']>(null);
  let stopping = new AbortController();

  async function branch(editor: TreeEditor, parent: NodeId, request: BranchRequest): Promise<void> {
    failed.value = null;
    const { signal } = stopping;
    const { tree, selected } = editor.position.peek();
    const ids = Array.from({ length: request.n }, (_, index) => tree.nextId + index);
    editor.edit(
      (tree) =>
        addChildren(
          tree,
          parent,
          ids.map(() => emptyNode(request.model)),
        ),
      selected,
    );
    growing.value = new Set([...growing.peek(), ...ids]);
    const arrived = new ArrivedText(ids);
    const show = () => editor.rewrite((tree) => growNodes(tree, arrived.take()));
    const timer = setInterval(show, UPDATE_MS);
    try {
      for await (const update of streamCompletion(request.connection, bodyOf(tree, parent, request), signal))
        arrived.add(update);
    } catch (thrown) {
      if (!signal.aborted)
        failed.value = {
          failure:
            thrown instanceof RequestFailure ? thrown : new RequestFailure('unreachable', String(thrown)),
          retry: () => void branch(editor, parent, request),
        };
    } finally {
      clearInterval(timer);
      show();
      editor.rewrite((tree) => ids.reduce(withoutEmpty, tree));
      growing.value = new Set([...growing.peek()].filter((id) => !ids.includes(id)));
    }
  }

  return {
    ...{ growing, failed, branch },
    stop: () => {
      stopping.abort();
      stopping = new AbortController();
    },
  };
}

const emptyNode = (model: string) => ({
  text: '',
  tokens: [],
  generation: { model, finishReason: null, promptTokens: null, cachedTokens: null },
});

/** Alternatives per token that every dialect allows. */
const LOGPROBS = 5;

const bodyOf = (tree: Tree, parent: NodeId, { model, n, parameters }: BranchRequest) => ({
  ...parameters,
  ...{ model, n, logprobs: LOGPROBS, return_token_ids: true },
  prompt: textTo(tree, parent),
});

/** Removes a node for which nothing has arrived. */
function withoutEmpty(tree: Tree, id: NodeId): Tree {
  const node = tree.nodes.get(id);
  return node && node.text === '' && node.generation?.finishReason === null ? prune(tree, id) : tree;
}

/** Collects what arrives for each branch until it is shown. */
class ArrivedText {
  readonly #ids: readonly NodeId[];
  #growth = new Map<NodeId, Growth>();

  constructor(ids: readonly NodeId[]) {
    this.#ids = ids;
  }

  add(update: StreamUpdate): void {
    if (update.type === 'choice') {
      const { text, tokens, finishReason } = update;
      const ended = finishReason === null ? {} : { finishReason };
      this.#append(this.#ids[update.index]!, { text, tokens, generation: ended });
    } else if (update.type === 'usage') {
      const { promptTokens, cachedTokens } = update.usage;
      for (const id of this.#ids)
        this.#append(id, { text: '', tokens: [], generation: { promptTokens, cachedTokens } });
    }
  }

  #append(id: NodeId, more: Growth): void {
    const known = this.#growth.get(id);
    this.#growth.set(id, {
      text: (known?.text ?? '') + more.text,
      tokens: [...(known?.tokens ?? []), ...more.tokens],
      generation: { ...known?.generation, ...more.generation },
    });
  }

  /** Returns what arrived since the last call. */
  take(): ReadonlyMap<NodeId, Growth> {
    const taken = this.#growth;
    this.#growth = new Map();
    return taken;
  }
}
