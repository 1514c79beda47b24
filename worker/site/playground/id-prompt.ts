import { type Signal, signal } from '@preact/signals';
import { type Connection, LOCAL_SUFFIX, requestJson } from '../api/client.ts';
import { RequestFailure } from '../api/request-failure.ts';
import { tokenBytes } from '../api/token-bytes.ts';
import type { EditorContent } from '../editor/text-editor.ts';

/** A text with the token ids that stand for it. */
export interface IdText {
  readonly text: string;
  readonly ids: readonly number[];
}

/**
 * Prompts that are sent as token ids. The ids count for exactly their text: after another change the text
 * itself is sent, and undo brings back the ids.
 */
export interface IdPrompts {
  readonly isOn: Signal<boolean>;
  /** The last one last. */
  readonly recent: Signal<readonly IdText[]>;
  /** Puts the text of ids that are written, and not yet read, into the editor. Returns false if it cannot. */
  readonly unread: Signal<(() => Promise<boolean>) | null>;
}

export const openIdPrompts = (): IdPrompts => ({
  isOn: signal(false),
  recent: signal([]),
  unread: signal(null),
});

const MAX_RECENT = 50;

export function keepIds({ recent }: IdPrompts, next: IdText): void {
  recent.value = [...recent.peek().filter(({ text }) => text !== next.text), next].slice(-MAX_RECENT);
}

type Content = Pick<EditorContent, 'text' | 'mark'>;

/** Returns the ids that are sent for a text; null = the text is sent. */
export const idsOf = ({ isOn, recent }: IdPrompts, { text, mark }: Content): readonly number[] | null =>
  isOn.value && mark === null ? (recent.value.findLast((each) => each.text === text)?.ids ?? null) : null;

/** Keeps the ids of a text that was continued, if the generated tokens are exactly what was added. */
export function continueIds(
  prompts: IdPrompts,
  before: Content,
  { text, mark, tokens }: EditorContent,
): void {
  const ids = idsOf(prompts, before);
  if (ids === null || mark !== null || !text.startsWith(before.text)) return;
  const added = tokens.filter(({ from }) => from >= before.text.length).flatMap((place) => place.tokens);
  const bytes = added.flatMap(({ name }) => [...tokenBytes(name)]);
  const expected = new TextEncoder().encode(text.slice(before.text.length));
  const isWhole = bytes.length === expected.length && bytes.every((byte, at) => byte === expected[at]);
  const generated = added.map(({ id }) => id).filter((id) => id !== null);
  if (isWhole && generated.length === added.length) keepIds(prompts, { text, ids: [...ids, ...generated] });
}

/** Reads ids that are written as JSON, or with spaces or commas between them. */
export function readIds(written: string): { readonly ids: readonly number[] } | { readonly fault: string } {
  const parts = written
    .trim()
    .replace(/^\[([^[\]]*)\]$/, '$1')
    .split(/[\s,]+/)
    .filter((part) => part !== '');
  const wrong = parts.find((part) => !/^\d+$/.test(part) || !Number.isSafeInteger(Number(part)));
  return wrong === undefined ? { ids: parts.map(Number) } : { fault: `${wrong} is not a token id.` };
}

interface Echo {
  readonly choices: readonly { readonly text: string; readonly prompt_token_ids?: readonly number[] }[];
}

/** A server without a tokenizer endpoint, and a model in this browser, can echo a prompt. */
async function echo(connection: Connection, model: string, prompt: string | readonly number[]) {
  const body = { model, prompt, max_tokens: 0, echo: true, return_token_ids: true };
  const { choices } = await requestJson<Echo>(connection, '/v1/completions', { body });
  return { text: choices[0]?.text ?? '', ids: choices[0]?.prompt_token_ids ?? [] };
}

async function orEcho<T>(
  connection: Connection,
  model: string,
  ask: () => Promise<T>,
  echoed: () => Promise<T>,
): Promise<T> {
  if (model.endsWith(LOCAL_SUFFIX)) return echoed();
  return ask().catch((thrown: unknown) => {
    if (thrown instanceof RequestFailure && thrown.param === 'model' && connection.key !== null)
      return echoed();
    throw thrown;
  });
}

/** Returns the text of token ids. @throws RequestFailure */
export async function textOfIds(
  connection: Connection,
  model: string,
  ids: readonly number[],
): Promise<IdText> {
  if (ids.length === 0) return { text: '', ids };
  const body = { model, tokens: ids };
  const text = await orEcho(
    connection,
    model,
    async () => {
      type Detokenized = { readonly prompt?: string; readonly content?: string };
      const text = await requestJson<Detokenized>(connection, '/detokenize', { body });
      return text.prompt ?? text.content ?? '';
    },
    async () => (await echo(connection, model, ids)).text,
  );
  return { text, ids };
}

/** Returns the token ids of a text. @throws RequestFailure */
export async function idsOfText(connection: Connection, model: string, text: string): Promise<IdText> {
  if (text === '') return { text, ids: [] };
  const ids = await orEcho(
    connection,
    model,
    async () => {
      const body = { model, prompt: text };
      return (await requestJson<{ tokens: readonly number[] }>(connection, '/tokenize', { body })).tokens;
    },
    async () => (await echo(connection, model, text)).ids,
  );
  return { text, ids };
}
