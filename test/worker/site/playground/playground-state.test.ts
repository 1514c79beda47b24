import '../support/page-globals.ts';
import { computed, signal } from '@preact/signals';
import { beforeEach, expect, test, vi } from 'vitest';
import type { EditorContent, TextEditor } from '../../../../worker/site/editor/text-editor.ts';
import { Generation } from '../../../../worker/site/playground/generation.ts';
import { openIdPrompts } from '../../../../worker/site/playground/id-prompt.ts';
import {
  complete,
  type PlaygroundState,
  score,
  showRun,
  takeChoice,
} from '../../../../worker/site/playground/playground-state.ts';
import { statusTexts } from '../../../../worker/site/playground/status-line.tsx';
import type { PlacedTokens } from '../../../../worker/site/tokens/placed-tokens.ts';
import { CONNECTION, completion, cutCompletion, serveCompletions } from '../support/fake-completions.ts';
import { stubDocument } from '../support/stub-document.ts';

const PROMPT = 'Once upon a time';

/** Keeps text and tints as the editor does. */
class FakeEditor {
  content: EditorContent = { text: PROMPT, tokens: [], mark: null };
  /** Texts before each step. */
  readonly steps: string[] = [];
  beginStep(): void {
    this.steps.push(this.content.text);
  }
  replace(from: number, to: number, text: string): void {
    const before = this.content.text;
    this.content = { ...this.content, text: before.slice(0, from) + text + before.slice(to), tokens: [] };
  }
  endStep(): void {}
  lock(): void {}
  tint(tokens: readonly PlacedTokens[]): void {
    this.content = { ...this.content, tokens: [...this.content.tokens, ...tokens] };
  }
  append(at: number, text: string, tokens: readonly PlacedTokens[]): void {
    const before = this.content.text;
    this.content = { ...this.content, text: before.slice(0, at) + text + before.slice(at) };
    this.tint(tokens);
  }
  get tinted(): string[] {
    return this.content.tokens.map(({ from, to }) => this.content.text.slice(from, to));
  }
}

function opened(parameters: Record<string, unknown> = {}) {
  const editor = new FakeEditor();
  let now = 0;
  const generation = new Generation(() => (now += 50));
  const state: PlaygroundState = {
    session: {
      connection: signal(CONNECTION),
      model: signal('default'),
      access: signal({ state: 'no-key' }),
    } as unknown as PlaygroundState['session'],
    content: signal(editor.content),
    parameters: signal(parameters),
    generation,
    editor: signal(editor as unknown as TextEditor),
    isRunning: computed(() => ['waiting', 'streaming'].includes(generation.phase.value.name)),
    score: signal(null),
    dialog: signal(null),
    arrival: signal(null),
    choices: signal(null),
    ids: openIdPrompts(),
    runs: signal([]),
    drawSeed: () => 7,
  };
  return { editor, state };
}

beforeEach(() => {
  stubDocument();
});

test('the echo of the end of a prompt tints that end, and the completion after it', async () => {
  serveCompletions(() =>
    completion(
      {
        text: ' a time',
        tokens: [
          [' a', -1],
          [' time', -2],
        ],
      },
      {
        text: ' there was',
        tokens: [
          [' there', -1],
          [' was', -1],
        ],
        offset: 7,
        finish_reason: 'length',
      },
    ),
  );
  const { editor, state } = opened({ echo: true, echo_last: 2 });
  await complete(state);
  expect(editor.content.text).toBe(`${PROMPT} there was`);
  expect(editor.tinted).toEqual([' a', ' time', ' there', ' was']);
  expect(state.score.peek()).toEqual({ perplexity: Math.exp(1.5), tokens: 2 });
});

test('a parameter that shows a fault gets the focus, and nothing is sent', async () => {
  serveCompletions(() => completion({ text: ' there', finish_reason: 'length' }));
  const { editor, state } = opened({ logprobs: null });
  const control = { closest: () => null, focus: vi.fn(), reportValidity: () => true };
  stubDocument([control]);
  await complete(state);
  expect([control.focus.mock.calls.length, editor.content.text]).toEqual([1, PROMPT]);
  // It has been closed with its sheet.
  stubDocument();
  await complete(state);
  expect(editor.content.text).toBe(`${PROMPT} there`);
});

test('without logprobs, the echo of the prompt is not written into the text again', async () => {
  serveCompletions(() => completion({ text: PROMPT }, { text: ' there', finish_reason: 'length' }));
  const { editor, state } = opened({ echo: true, logprobs: null });
  await complete(state);
  expect(editor.content).toMatchObject({ text: `${PROMPT} there`, tokens: [] });
});

test('a score tints the whole text and has its perplexity, and generates nothing', async () => {
  const sent = serveCompletions(() =>
    completion({
      text: PROMPT,
      tokens: [
        ['Once', null],
        [' upon a', -1],
        [' time', -2],
      ],
      finish_reason: 'length',
    }),
  );
  const { editor, state } = opened({ temperature: 0.3 });
  await score(state);
  expect(sent[0]!.body).toMatchObject({ prompt: PROMPT, max_tokens: 0, echo: true, logprobs: 5 });
  expect(editor.content.text).toBe(PROMPT);
  expect(editor.tinted).toEqual(['Once', ' upon a', ' time']);
  const { phase, figures } = state.generation;
  const perplexity = `Perplexity ${Math.exp(1.5).toFixed(2)} over 3 tokens`;
  expect(statusTexts(phase.peek(), figures.peek(), state.score.peek())).toContain(perplexity);
});

test('an infill is asked for with the text on both sides of the mark, and goes between them', async () => {
  const sent = serveCompletions(() => completion({ text: ' 2 * n', finish_reason: 'stop' }));
  const { editor, state } = opened();
  const [before, after] = ['def double(n):\n    result =', '\n    return result'];
  editor.content = { text: before + after, tokens: [], mark: before.length };
  await complete(state);
  expect(sent[0]!.body).toMatchObject({ prompt: before, suffix: after });
  expect(editor.content.text).toBe(`${before} 2 * n${after}`);
});

test('a stream that breaks off keeps its text, and a retry continues from its end', async () => {
  const sent = serveCompletions((_, at) =>
    at === 0 ? cutCompletion({ text: ' there was a' }) : completion({ text: ' king', finish_reason: 'stop' }),
  );
  const { editor, state } = opened();
  await complete(state);
  expect(state.generation.phase.peek()).toMatchObject({ name: 'failed', failure: { kind: 'cut-stream' } });
  expect(editor.content.text).toBe(`${PROMPT} there was a`);
  await complete(state);
  expect(sent[1]!.body).toMatchObject({ prompt: `${PROMPT} there was a` });
  expect(editor.content.text).toBe(`${PROMPT} there was a king`);
});

test('a refused key and a lost network keep the text, and another key or a retry completes', async () => {
  const error = { message: 'No.', type: 'invalid_request_error', param: null, code: 'invalid_api_key' };
  serveCompletions((_, at) => {
    if (at === 0) return Response.json({ error }, { status: 401 });
    if (at === 1) throw new TypeError('Failed to fetch');
    return completion({ text: ' there was', finish_reason: 'stop' });
  });
  const { editor, state } = opened();
  const { phase } = state.generation;
  await complete(state);
  expect(phase.peek()).toMatchObject({ name: 'failed', failure: { kind: 'key-refused' } });
  vi.stubGlobal('navigator', { onLine: false });
  await complete(state);
  expect(phase.peek()).toMatchObject({ name: 'failed', failure: { kind: 'offline' } });
  expect(editor.content.text).toBe(PROMPT);
  await complete(state);
  expect(phase.peek()).toMatchObject({ name: 'finished' });
  expect(editor.content.text).toBe(`${PROMPT} there was`);
});

test('the status line is that of one run, and says when the model added nothing', async () => {
  const error = { message: 'Not so.', type: 'invalid_request_error', param: null, code: null };
  serveCompletions(
    (_, at) =>
      [
        completion({ text: ' there' }, { text: ' was', finish_reason: 'length' }),
        Response.json({ error }, { status: 400 }),
        completion({ text: '', finish_reason: 'stop' }),
      ][at]!,
  );
  const { state } = opened();
  const { phase, figures } = state.generation;
  const line = () => statusTexts(phase.peek(), figures.peek(), state.score.peek());
  await complete(state);
  expect(line()).toEqual(['Finished: length', 'TTFT 100 ms', '20 tokens/s', '2 tokens']);
  await complete(state);
  expect(line()).toEqual(['Failed']);
  await complete(state);
  expect(line()[0]).toBe('Finished: stop, the model added no text');
});

test('several choices leave the text as it is, and each is taken, and changed for another, in one step', async () => {
  const sent = serveCompletions(() =>
    completion(
      { index: 0, text: ' there was', tokens: [[' there was', -1]], finish_reason: 'length' },
      { index: 1, text: ' a king', tokens: [[' a king', -2]], finish_reason: 'length' },
    ),
  );
  vi.stubGlobal('window', { setTimeout, clearTimeout });
  const { editor, state } = opened({ n: 2 });
  await complete(state);
  expect(sent[0]!.body).toMatchObject({ n: 2, seed: 7 });
  expect(editor.content.text).toBe(PROMPT);
  editor.steps.length = 0;
  expect(takeChoice(state, 1)).toBe(true);
  expect([editor.content.text, ...editor.tinted]).toEqual([`${PROMPT} a king`, ' a king']);
  expect(takeChoice(state, 0)).toBe(true);
  expect([editor.content.text, ...editor.tinted]).toEqual([`${PROMPT} there was`, ' there was']);
  expect(editor.steps).toEqual([PROMPT, `${PROMPT} a king`]);
  editor.content = { ...editor.content, text: 'Other' };
  expect(takeChoice(state, 1)).toBe(false);
});

test('each generated token leads to the request that generated it, as it was sent', async () => {
  const sent = serveCompletions((_, at) =>
    completion({
      text: at === 0 ? ' there' : ' was',
      tokens: [[at === 0 ? ' there' : ' was', -1]],
      finish_reason: 'length',
    }),
  );
  const { editor, state } = opened({ temperature: 0.3 });
  await complete(state);
  await complete(state);
  const [first, second] = editor.content.tokens;
  expect(showRun(state, first!)).toBe(true);
  expect(state.dialog.peek()).toMatchObject({ body: sent[0]!.body, texts: [' there'], isWhole: true });
  expect(showRun(state, second!)).toBe(true);
  expect(state.dialog.peek()).toMatchObject({ body: sent[1]!.body, texts: [' was'] });
  expect(showRun(state, { from: 0, to: 4, tokens: [] })).toBe(false);
});
