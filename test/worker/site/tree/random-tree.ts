import fc from 'fast-check';
import { type Logprobs, tokensOf } from '../../../../worker/site/api/completion-stream.ts';
import { isPartial } from '../../../../worker/site/api/token-bytes.ts';
import { withOffsets } from '../../../../worker/site/api/whole-choices.ts';
import { type NodeId, newTree, nodeOf, type Tree, walk } from '../../../../worker/site/tree/tree.ts';
import { addChildren, changeNode, type NewNode, prune } from '../../../../worker/site/tree/tree-edits.ts';

/** Token names as the API writes them: white space, markup, numbers, special tokens, parts of characters. */
const tokenName = fc.constantFrom(
  ' king',
  'é',
  '🙂',
  '\n',
  ' a\t',
  '1',
  '<b>',
  '`',
  '<|end|>',
  'bytes:\\xc3',
);
const logprob = fc.double({ min: -30, max: 0, noNaN: true }).map((value) => value + 0);
const topLogprobs = fc.array(fc.tuple(tokenName, logprob), { maxLength: 3 }).map(Object.fromEntries<number>);

/** What a token adds to the text: nothing if it is hidden or the first part of a character. */
const textOf = (name: string): string => (name === '<|end|>' || isPartial(name) ? '' : name);

/** Returns a choice of the API with these tokens. */
export function choice(names: readonly string[], more: Partial<Logprobs> = {}, ids?: readonly number[]) {
  const texts = names.map(textOf);
  const logprobs: Logprobs = {
    tokens: names,
    token_logprobs: names.map(() => -1),
    top_logprobs: names.map(() => null),
    ...more,
  };
  const offsets = texts.map((_, index) => Array.from(texts.slice(0, index).join('')).length);
  return { text: texts.join(''), tokens: withOffsets(tokensOf(logprobs, ids), offsets) };
}

const generated = fc
  .array(fc.tuple(tokenName, fc.option(logprob), topLogprobs, fc.nat(500)), { maxLength: 4 })
  .map((tokens) =>
    choice(
      tokens.map(([name]) => name),
      {
        token_logprobs: tokens.map(([, value]) => value),
        top_logprobs: tokens.map(([, , top]) => top),
        top_token_ids: tokens.map(([, , top, id]) =>
          Object.fromEntries(Object.keys(top).map((name) => [name, id])),
        ),
      },
      tokens.map(([, , , id]) => id),
    ),
  );

const generation = fc.record({
  model: fc.constantFrom('default', 'b'),
  finishReason: fc.constantFrom('stop', 'length', null),
  promptTokens: fc.option(fc.nat(100)),
  cachedTokens: fc.option(fc.nat(100)),
});

const newNode: fc.Arbitrary<NewNode> = fc.oneof(
  fc.tuple(generated, generation).map(([made, how]) => ({ ...made, generation: how })),
  fc.string({ maxLength: 12 }).map((text) => ({ text, tokens: [], generation: null })),
);

/** Picks a node by a number from 0 to 1. */
export const nodeAt = (tree: Tree, position: number): NodeId => {
  const ids = [...walk(tree)].map(({ id }) => id);
  return ids[Math.min(ids.length - 1, Math.floor(position * ids.length))]!;
};

type Edit = (tree: Tree) => Tree;
const position = fc.double({ min: 0, max: 1, noNaN: true });

export const anyEdit: fc.Arbitrary<Edit> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.tuple(position, fc.array(newNode, { minLength: 1, maxLength: 3 })).map(
      ([at, nodes]): Edit =>
        (tree) =>
          addChildren(tree, nodeAt(tree, at), nodes),
    ),
  },
  fc.tuple(position, fc.string({ maxLength: 8 })).map(
    ([at, name]): Edit =>
      (tree) =>
        changeNode(tree, nodeAt(tree, at), { name }),
  ),
  position.map(
    (at): Edit =>
      (tree) => {
        const id = nodeAt(tree, at);
        return changeNode(tree, id, { bookmarked: !nodeOf(tree, id).bookmarked });
      },
  ),
  position.map(
    (at): Edit =>
      (tree) =>
        prune(tree, nodeAt(tree, at)),
  ),
);

export const anyTree: fc.Arbitrary<Tree> = fc
  .tuple(fc.string({ maxLength: 10 }), fc.string({ maxLength: 20 }), fc.array(anyEdit, { maxLength: 25 }))
  .map(([name, prompt, edits]) => edits.reduce((tree, edit) => edit(tree), newTree(name, prompt)));
