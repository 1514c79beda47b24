import '../support/page-globals.ts';
import { signal } from '@preact/signals';
import { beforeEach, describe, expect, test } from 'vitest';
import { placedTokens } from '../../../../worker/site/tokens/token-list.tsx';
import { type BranchRequest, createBranching } from '../../../../worker/site/tree/branching.ts';
import { newTree, nodeOf, ROOT, type Tree, textTo } from '../../../../worker/site/tree/tree.ts';
import { branch, branchAgain, branchWith } from '../../../../worker/site/tree/tree-commands.ts';
import { createEditor } from '../../../../worker/site/tree/tree-editor.ts';
import { addChildren } from '../../../../worker/site/tree/tree-edits.ts';
import { KEY_BINDINGS } from '../../../../worker/site/tree/tree-keys.ts';
import type { TreeState } from '../../../../worker/site/tree/tree-state.ts';
import { waitFor } from '../../../support/wait-for.ts';
import { CONNECTION, completion, openCompletion, serveCompletions } from '../support/fake-completions.ts';
import { stubDocument } from '../support/stub-document.ts';
import { choice } from './random-tree.ts';

const PROMPT = 'Once upon a time';
const REQUEST: BranchRequest = { connection: CONNECTION, model: 'default', n: 3, parameters: {} };

const editorOf = (tree: Tree, selected = ROOT) =>
  createEditor('id', { tree, selected, collapsed: new Set() });

const keyOf = (key: string) => KEY_BINDINGS.find(({ keys }) => keys.includes(key))!;

const texts = (tree: Tree) => nodeOf(tree, ROOT).children.map((id) => nodeOf(tree, id).text);

const three = () =>
  completion(...[' a', ' b', ' c'].map((text, index) => ({ index, text, finish_reason: 'length' })));

beforeEach(() => stubDocument());

describe('a request for branches', () => {
  test('that is refused leaves the tree as it was, and its retry branches', async () => {
    const error = {
      message: 'Limit 3 per minute.',
      type: 'requests',
      param: null,
      code: 'rate_limit_exceeded',
    };
    const headers = { 'retry-after': '1' };
    const sent = serveCompletions((_, at) =>
      at === 0 ? Response.json({ error }, { status: 429, headers }) : three(),
    );
    const editor = editorOf(newTree('t', PROMPT));
    const branching = createBranching();
    await branching.branch(editor, { tree: editor.position.peek().tree, id: ROOT }, REQUEST);
    const { failure, retry } = branching.failed.peek()!;
    expect(failure).toMatchObject({ kind: 'rate-limited', retryAfterMs: 1_000 });
    expect(texts(editor.position.peek().tree)).toEqual([]);
    expect(branching.growing.peek().size).toBe(0);
    retry();
    expect(branching.failed.peek()).toBeNull();
    await waitFor(() => expect(branching.growing.peek().size).toBe(0));
    expect(texts(editor.position.peek().tree)).toEqual([' a', ' b', ' c']);
    expect(sent[1]!.body).toEqual(sent[0]!.body);
  });

  test('that Escape stops keeps what arrived, and no branch without text', async () => {
    serveCompletions(({ signal }) => openCompletion(signal, { index: 1, text: ' kept' }));
    const editor = editorOf(newTree('t', PROMPT));
    const branching = createBranching();
    const ended = branching.branch(editor, { tree: editor.position.peek().tree, id: ROOT }, REQUEST);
    await waitFor(() => expect(texts(editor.position.peek().tree)).toContain(' kept'));
    keyOf('Escape').run({ branching, cursor: signal(null) } as unknown as TreeState, editor, 'Escape');
    await ended;
    expect(texts(editor.position.peek().tree)).toEqual([' kept']);
    expect([branching.failed.peek(), branching.growing.peek().size]).toEqual([null, 0]);
  });
});

describe('the commands for branches', () => {
  /** A prompt with one child of three tokens, which is selected. */
  function opened() {
    const sent = serveCompletions(three);
    const editor = editorOf(
      addChildren(newTree('t', PROMPT), ROOT, [{ ...choice([' a', ' b', ' c']), generation: null }]),
      1,
    );
    const state = {
      session: { connection: signal(CONNECTION), model: signal('default') },
      n: signal(3),
      parameters: signal({ top_k: 7, max_tokens: 24 }),
      cursor: signal(null),
      branching: createBranching(),
    } as unknown as TreeState;
    return { sent, editor, state, tokens: placedTokens(editor.node.peek()) };
  }

  test('send the text to the end of the node, or to the selected token, with all parameters', () => {
    const { sent, editor, state, tokens } = opened();
    branch(state, editor);
    state.cursor.value = tokens[2]!;
    branch(state, editor);
    branchAgain(state, editor);
    const prompts = sent.map(({ body }) => body.prompt);
    expect(prompts).toEqual([`${PROMPT} a b c`, `${PROMPT} a b`, PROMPT]);
    const fields = { n: 3, top_k: 7, max_tokens: 24, model: 'default', logprobs: 5, return_token_ids: true };
    for (const { body } of sent) expect(body).toMatchObject(fields);
  });

  test('continue from an alternative of a token, in a branch beside it', async () => {
    const { sent, editor, state, tokens } = opened();
    branchWith(state, editor, tokens[1]!, { name: ' other', logprob: -2, id: 9 });
    expect(sent[0]!.body.prompt).toBe(`${PROMPT} a other`);
    await waitFor(() => expect(state.branching.growing.peek().size).toBe(0));
    const { tree, selected } = editor.position.peek();
    expect(textTo(tree, selected)).toBe(`${PROMPT} a other`);
    expect(nodeOf(tree, selected).children).toHaveLength(3);
    expect(texts(tree)).toEqual([' a']);
  });
});
