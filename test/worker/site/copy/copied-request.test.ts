import '../support/page-globals.ts';
import { computed, signal } from '@preact/signals';
import { h } from 'preact';
import { expect, test, vi } from 'vitest';
import { CopyDialog } from '../../../../worker/site/copy/copy-dialog.tsx';
import type { EditorContent, TextEditor } from '../../../../worker/site/editor/text-editor.ts';
import { Generation } from '../../../../worker/site/playground/generation.ts';
import { openIdPrompts } from '../../../../worker/site/playground/id-prompt.ts';
import { ParametersPanel } from '../../../../worker/site/playground/parameters-panel.tsx';
import {
  bodyOf,
  complete,
  type PlaygroundState,
  presetOf,
} from '../../../../worker/site/playground/playground-state.ts';
import { type Session, SessionContext } from '../../../../worker/site/store/session.ts';
import { waitFor } from '../../../support/wait-for.ts';
import { CONNECTION, completion, serveCompletions } from '../support/fake-completions.ts';
import { rendered } from '../support/rendered.ts';

const PROMPT = 'Once upon a time there was a "king"\nwho didn\'t say \\n';
const KEY = 'sk-of-this-visitor';

/** The parameters of the playground beside the dialog that copies its request. */
function opened() {
  const sent = serveCompletions(() => completion({ text: '', finish_reason: 'stop' }));
  vi.stubGlobal('location', { origin: 'https://endpoint.test' });
  const content: EditorContent = { text: PROMPT, tokens: [], mark: null };
  const editor = { content, beginStep() {}, endStep() {}, lock() {}, tint() {}, append() {} };
  const models = [{ id: 'default', token_healing: true }];
  const session = {
    connection: signal(CONNECTION),
    key: signal(KEY),
    dialect: signal(null),
    model: signal('default'),
    access: signal({ state: 'accepted', models }),
  } as unknown as Session;
  const generation = new Generation(() => 0);
  const state: PlaygroundState = {
    session,
    content: signal(content),
    parameters: signal({ max_tokens: 64, temperature: 0 }),
    generation,
    editor: signal(editor as unknown as TextEditor),
    isRunning: computed(() => false),
    score: signal(null),
    dialog: signal(null),
    arrival: signal(null),
    choices: signal(null),
    ids: openIdPrompts(),
    runs: signal([]),
    drawSeed: () => 7,
  };
  const Shown = () => [
    h(ParametersPanel, { parameters: state.parameters, preset: presetOf(state) }),
    h(CopyDialog, { body: bodyOf(state, content), onClose: () => undefined }),
  ];
  const page = rendered(h(SessionContext.Provider, { value: session }, h(Shown, {})));
  const code = () => page.all('code', 'curl')[0]!.textContent;
  const copied = () => JSON.parse(/-d '(.*)'$/s.exec(code())![1]!.replaceAll("'\\''", "'"));
  /** Returns what a completion sends, without the fields of every stream. */
  const requested = async () => {
    await complete(state);
    const { stream: _, stream_options: __, seed: ___, ...body } = sent.at(-1)!.body;
    return body;
  };
  return { page, code, copied, requested };
}

test('the copied request is the one that the page sends, and has no key', async () => {
  const { code, copied, requested } = opened();
  const fields = { max_tokens: 64, temperature: 0, token_healing: true, logprobs: 5, return_token_ids: true };
  expect(copied()).toEqual({ model: 'default', prompt: PROMPT, ...fields });
  expect(await requested()).toEqual(copied());
  expect(code()).not.toContain(KEY);
});

test('what the page sends by itself is shown, and can be left out', async () => {
  const { page, copied, requested } = opened();
  const shown = () => ['token_healing', 'logprobs', 'return_token_ids'].map((name) => page.field(name).value);
  expect(shown()).toEqual(['true', '5', 'true']);
  for (const [name, value] of [
    ['token_healing', ''],
    ['return_token_ids', 'false'],
  ] as const) {
    page.field(name).value = value;
    page.field(name).dispatch('change');
  }
  page.write('logprobs', '');
  await waitFor(() => expect(copied()).not.toHaveProperty('logprobs'));
  const fields = { max_tokens: 64, temperature: 0, return_token_ids: false };
  expect(copied()).toEqual({ model: 'default', prompt: PROMPT, ...fields });
  expect(await requested()).toEqual(copied());
});
