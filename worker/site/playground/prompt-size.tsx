import { useSignal, useSignalEffect } from '@preact/signals';
import { send } from '../api/client.ts';
import { limitsOf } from '../api/completion-stream.ts';
import { usePlayground } from './playground-state.ts';
import { promptOf } from './request-body.ts';

/** The text is counted when the visitor pauses, because each count is a request. */
const PAUSE_MS = 600;
/** Requests of the limit that are left for completions. */
const MIN_LEFT = 5;

interface Count {
  readonly count: number;
  readonly max_model_len: number;
}

/** Tokens of the prompt before it is sent, of those that the context of the model holds. */
export function PromptSize() {
  const { content, session, generation, isRunning } = usePlayground();
  const size = useSignal<Count | null>(null);
  useSignalEffect(() => {
    const { prompt, suffix = '' } = promptOf(content.value);
    const { left = MIN_LEFT } = generation.figures.peek().limits?.requests ?? {};
    const [connection, model] = [session.connection.value, session.model.value];
    const hasText = prompt + suffix !== '' && session.access.value.state === 'accepted';
    if (!hasText || left < MIN_LEFT) size.value = null;
    if (!hasText || isRunning.value || left < MIN_LEFT) return;
    const changed = new AbortController();
    const { signal } = changed;
    const count = async (text: string) => {
      const response = await send(connection, '/tokenize', { body: { model, prompt: text }, signal });
      generation.figures.value = { ...generation.figures.peek(), limits: limitsOf(response.headers) };
      return (await response.json()) as Count;
    };
    const timer = setTimeout(async () => {
      const counts = await Promise.all([prompt, suffix].filter((text) => text !== '').map(count)).catch(
        () => [],
      );
      const [first] = counts;
      if (signal.aborted) return;
      // A server without a tokenizer endpoint counts nothing.
      size.value = first ? { ...first, count: counts.reduce((sum, one) => sum + one.count, 0) } : null;
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      changed.abort();
    };
  });
  if (size.value === null) return null;
  const { count, max_model_len: context } = size.value;
  return (
    <p
      class={`figures ${count < context ? 'quiet' : 'error-text'}`}
      title="The context holds prompt and completion"
    >
      Prompt: {count.toLocaleString('en')} of {context.toLocaleString('en')} tokens
    </p>
  );
}
