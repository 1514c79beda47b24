import { useSignal, useSignalEffect } from '@preact/signals';
import { type Connection, send } from '../api/client.ts';
import { limitsOf, type RemainingLimits } from '../api/completion-stream.ts';
import { RequestFailure } from '../api/request-failure.ts';
import { contextOf } from '../store/session.ts';
import { usePlayground } from './playground-state.ts';
import { promptOf } from './request-body.ts';

/** The text is counted when the visitor pauses, because each count is a request. */
const PAUSE_MS = 600;
/** Requests of the limit that are left for completions. */
const MIN_LEFT = 5;

interface Size {
  /** Null = more than the server counts. */
  readonly tokens: number | null;
  readonly context: number;
}

/**
 * Counts the tokens of a text. The server counts up to four contexts; its refusal of a longer text names the
 * number, unless the text is longer still.
 * @throws what is no refusal of the length
 */
async function countTokens(
  connection: Connection,
  body: { readonly model: string; readonly prompt: string },
  signal: AbortSignal,
): Promise<{ readonly tokens: number | null; readonly limits: RemainingLimits | null }> {
  try {
    const response = await send(connection, '/tokenize', { body, signal });
    const { count } = (await response.json()) as { readonly count: number };
    return { tokens: count, limits: limitsOf(response.headers) };
  } catch (thrown) {
    if (!(thrown instanceof RequestFailure)) throw thrown;
    if (thrown.param !== 'prompt' && thrown.status !== 413) throw thrown;
    const [, tokens] = /: (\d+) tokens/.exec(thrown.message) ?? [];
    return { tokens: tokens === undefined ? null : Number(tokens), limits: null };
  }
}

/** Returns the sum; null if a part is not known. */
const sumOf = (parts: readonly (number | null)[]): number | null =>
  parts.reduce((sum, part) => (sum === null || part === null ? null : sum + part), 0);

/** Tokens of the prompt before it is sent, of those that the context of the model holds. */
export function PromptSize() {
  const { content, session, generation, isRunning } = usePlayground();
  const size = useSignal<Size | null>(null);
  useSignalEffect(() => {
    const { prompt, suffix = '' } = promptOf(content.value);
    const { left = MIN_LEFT } = generation.figures.peek().limits?.requests ?? {};
    const [connection, model] = [session.connection.value, session.model.value];
    const context = contextOf(session.access.value, model);
    const isCounted = prompt + suffix !== '' && context !== null && left >= MIN_LEFT;
    if (!isCounted) size.value = null;
    if (!isCounted || isRunning.value) return;
    const changed = new AbortController();
    const { signal } = changed;
    const count = async (text: string) => {
      const { tokens, limits } = await countTokens(connection, { model, prompt: text }, signal);
      if (limits !== null) generation.figures.value = { ...generation.figures.peek(), limits };
      return tokens;
    };
    const timer = setTimeout(async () => {
      const texts = [prompt, suffix].filter((text) => text !== '');
      // A server without a tokenizer endpoint counts nothing.
      const counts = await Promise.all(texts.map(count)).catch(() => undefined);
      if (!signal.aborted) size.value = counts ? { tokens: sumOf(counts), context } : null;
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      changed.abort();
    };
  });
  if (size.value === null) return null;
  const { tokens, context } = size.value;
  return (
    <p
      class={`figures ${tokens !== null && tokens < context ? 'quiet' : 'error-text'}`}
      title="The context holds prompt and completion"
    >
      Prompt: {tokens === null ? 'many times the' : `${tokens.toLocaleString('en')} of`}{' '}
      {context.toLocaleString('en')} tokens
    </p>
  );
}
