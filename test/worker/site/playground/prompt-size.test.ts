import '../support/page-globals.ts';
import { computed, signal } from '@preact/signals';
import { h } from 'preact';
import { beforeEach, expect, test, vi } from 'vitest';
import type { EditorContent } from '../../../../worker/site/editor/text-editor.ts';
import { Generation } from '../../../../worker/site/playground/generation.ts';
import {
  PlaygroundContext,
  type PlaygroundState,
} from '../../../../worker/site/playground/playground-state.ts';
import { PromptSize } from '../../../../worker/site/playground/prompt-size.tsx';
import { CONNECTION } from '../support/fake-completions.ts';
import { rendered } from '../support/rendered.ts';

const PAUSE_MS = 600;

beforeEach(() => {
  vi.useFakeTimers();
});

/** A page whose server counts one token per word, and whose model has a context of 100. */
function opened(reply = (text: string): Response => Response.json({ count: text.split(' ').length })) {
  const counted: string[] = [];
  vi.stubGlobal('navigator', { onLine: true });
  vi.stubGlobal('fetch', async (_: string, { body }: RequestInit) => {
    const { prompt } = JSON.parse(String(body)) as { prompt: string };
    counted.push(prompt);
    return reply(prompt);
  });
  const content = signal<EditorContent>({ text: '', tokens: [], mark: null });
  const generation = new Generation(() => 0);
  const state = {
    session: {
      connection: signal(CONNECTION),
      model: signal('default'),
      access: signal({ state: 'accepted', models: [{ id: 'default', max_model_len: 100 }] }),
    },
    content,
    generation,
    isRunning: computed(() => generation.phase.value.name === 'streaming'),
  } as unknown as PlaygroundState;
  const page = rendered(h(PlaygroundContext.Provider, { value: state }, h(PromptSize, {})));
  const write = async (text: string, pause = PAUSE_MS + 100, mark: number | null = null) => {
    content.value = { text, tokens: [], mark };
    await vi.advanceTimersByTimeAsync(pause);
  };
  return { counted, generation, page, write };
}

test('the tokens of a prompt are counted once, when the visitor pauses', async () => {
  const { counted, page, write } = opened();
  const text = 'Once upon a time';
  for (let length = 1; length <= text.length; length++) await write(text.slice(0, length), 100);
  expect([counted, page.text()]).toEqual([[], '']);
  await vi.advanceTimersByTimeAsync(PAUSE_MS);
  expect([counted, page.text()]).toEqual([[text], 'Prompt: 4 of 100 tokens']);
});

test('the size of an infill is that of the text on both sides of the mark', async () => {
  const { counted, page, write } = opened();
  await write('one two three', undefined, 3);
  expect([counted, page.text()]).toEqual([['one', ' two three'], 'Prompt: 4 of 100 tokens']);
});

test.each([
  [400, 'prompt', "Invalid 'prompt': 812 tokens. Expected at most 400.", 'Prompt: 812 of 100 tokens'],
  [400, 'prompt', "Invalid 'prompt': string too long.", 'Prompt: many times the 100 tokens'],
  [413, null, 'The body is too large.', 'Prompt: many times the 100 tokens'],
  [404, null, 'There is no such path.', ''],
])(
  'a count that is refused with %i and the field %s is shown as "%s: %s"',
  async (status, param, message, text) => {
    const error = { message, type: 'invalid_request_error', param, code: null };
    const { page, write } = opened(() => Response.json({ error }, { status }));
    await write('a long text');
    expect(page.text()).toBe(text);
  },
);

test('counts leave the last requests of a limit to completions', async () => {
  let left = 6;
  const { counted, generation, page, write } = opened(() =>
    Response.json(
      { count: 1 },
      {
        headers: { 'x-ratelimit-limit-requests': '60', 'x-ratelimit-remaining-requests': String(--left) },
      },
    ),
  );
  for (const text of ['a', 'ab', 'abc', 'abcd']) await write(text);
  expect(counted).toEqual(['a', 'ab']);
  expect(generation.figures.peek().limits?.requests).toMatchObject({ left: 4, of: 60 });
  expect(page.text()).toBe('');
});
