import { tokensOf } from '../../api/completion-stream.ts';
import { withOffsets } from '../../api/whole-choices.ts';
import { type NodeId, type Tree, type TreeNode, walk } from '../tree.ts';
import { ImportError, JsonReader } from './json-reader.ts';

/**
 * The file format of trees: a list of nodes, parents first. `parent` is an index of that list. Text and
 * logprobs have the form of a choice of the completions API.
 */

const FORMAT = 'continuo-tree';
const VERSION = 1;
const MAX_NODES = 100_000;

/** Returns the tree as a JSON text. */
export function exportJson(tree: Tree): string {
  const indexes = new Map<NodeId | null, number>();
  const nodes = [...walk(tree)].map((node, index) => {
    indexes.set(node.id, index);
    return { parent: indexes.get(node.parent) ?? null, ...nodeJson(node) };
  });
  return JSON.stringify({ format: FORMAT, version: VERSION, name: tree.name, nodes });
}

const nodeJson = ({ text, tokens, name, bookmarked, generation }: TreeNode) => ({
  text,
  ...(tokens.length > 0 && {
    logprobs: {
      tokens: tokens.map((token) => token.name),
      token_logprobs: tokens.map(({ logprob }) => logprob),
      top_logprobs: tokens.map(({ alternatives }) =>
        Object.fromEntries(alternatives.map((alternative) => [alternative.name, alternative.logprob])),
      ),
      top_token_ids: tokens.map(({ alternatives }) =>
        Object.fromEntries(alternatives.flatMap(({ name, id }) => (id === null ? [] : [[name, id]]))),
      ),
      text_offset: tokens.map(({ offset }) => offset),
    },
    token_ids: tokens.map(({ id }) => id),
  }),
  ...(name !== '' && { name }),
  ...(bookmarked && { bookmarked }),
  ...(generation && {
    generation: {
      model: generation.model,
      finish_reason: generation.finishReason,
      prompt_tokens: generation.promptTokens,
      cached_tokens: generation.cachedTokens,
    },
  }),
});

/** @throws ImportError */
export function importJson(text: string): Tree {
  const file = new JsonReader(parse(text), '');
  const nodes = file.field('nodes').list(readNode, { min: 1, max: MAX_NODES });
  for (const [index, { parent }] of nodes.entries()) {
    if (index === 0 ? parent === null : parent !== null && parent < index) continue;
    const allowed = index === 0 ? 'null' : `the index of an earlier node, 0 to ${index - 1}`;
    throw new ImportError(`nodes[${index}].parent is ${parent}, but must be ${allowed}.`);
  }
  return { name: file.field('name').text(), nodes: link(nodes), nextId: nodes.length };
}

/** Returns an object that has the format and version of a tree. */
function parse(text: string): unknown {
  let file: unknown;
  try {
    file = JSON.parse(text);
  } catch (thrown) {
    throw new ImportError(`The file is not JSON: ${(thrown as Error).message}`);
  }
  if (typeof file !== 'object' || file === null || Reflect.get(file, 'format') !== FORMAT)
    throw new ImportError('The file is JSON, but not a tree that this page exported.');
  const version: unknown = Reflect.get(file, 'version');
  if (version !== VERSION)
    throw new ImportError(
      `version is ${JSON.stringify(version)}, but this page reads version ${VERSION} only.`,
    );
  return file;
}

type UnlinkedNode = Omit<TreeNode, 'id' | 'children'>;

function readNode(node: JsonReader): UnlinkedNode {
  const logprobs = node.field('logprobs').optional((read) => ({
    tokens: read.field('tokens').list((name) => name.text()),
    token_logprobs: read.field('token_logprobs').list((value) => value.nullable((entry) => entry.number())),
    top_logprobs: read
      .field('top_logprobs')
      .list((top) => top.nullable((entry) => entry.record((value) => value.number()))),
    top_token_ids: read
      .field('top_token_ids')
      .optional((ids) => ids.list((top) => top.nullable((entry) => entry.record((id) => id.count())))),
    text_offset: read.field('text_offset').list((offset) => offset.count()),
  }));
  const ids = node
    .field('token_ids')
    .optional((read) => read.list((id) => id.nullable((entry) => entry.count())));
  const generation = node.field('generation').optional((read) => ({
    model: read.field('model').text(),
    finishReason: read.field('finish_reason').nullable((reason) => reason.text()),
    promptTokens: read.field('prompt_tokens').nullable((tokens) => tokens.count()),
    cachedTokens: read.field('cached_tokens').nullable((tokens) => tokens.count()),
  }));
  const lists = [logprobs?.token_logprobs, logprobs?.top_logprobs, logprobs?.text_offset, ids];
  const length = logprobs?.tokens.length ?? 0;
  if (lists.some((list) => list !== undefined && list.length !== length))
    node.fail('a node whose lists of tokens, logprobs and token ids have equal lengths');
  const tokens = logprobs ? withOffsets(tokensOf(logprobs), logprobs.text_offset) : [];
  return {
    parent: node.field('parent').nullable((parent) => parent.count()),
    text: node.field('text').text(),
    tokens: tokens.map((token, index) => ({ ...token, id: ids?.[index] ?? null })),
    name: node.field('name').optional((name) => name.text()) ?? '',
    bookmarked: node.field('bookmarked').optional((flag) => flag.flag()) ?? false,
    generation: generation ?? null,
  };
}

/** Gives the nodes their ids, which are their indexes, and their children. */
function link(nodes: readonly UnlinkedNode[]): ReadonlyMap<NodeId, TreeNode> {
  const linked = nodes.map((node, id) => ({ ...node, id, children: [] as NodeId[] }));
  for (const { id, parent } of linked) if (parent !== null) linked[parent]!.children.push(id);
  return new Map(linked.map((node) => [node.id, node]));
}
