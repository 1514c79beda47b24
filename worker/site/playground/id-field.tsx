import { useSignal } from '@preact/signals';
import { useEffect, useId, useRef } from 'preact/hooks';
import { failureFrom, reasonOf } from '../api/request-failure.ts';
import { Button } from '../controls/button.tsx';
import { Fault } from '../controls/fault.tsx';
import { type IdText, idsOf, idsOfText, keepIds, readIds, textOfIds } from './id-prompt.ts';
import { usePlayground } from './playground-state.ts';

/** Their text is asked for when the visitor pauses, because that is a request. */
const PAUSE_MS = 500;

/** The prompt as token ids. The text shows what they stand for. */
export function IdField() {
  const { session, content, ids: prompts, editor, isRunning } = usePlayground();
  const id = useId();
  const timer = useRef(0);
  const written = useSignal<string | null>(null);
  const fault = useSignal('');
  /** Counts requests, of which only the last one counts. */
  const asked = useRef(0);
  const ids = idsOf(prompts, content.value);

  /** Returns whether the ids are known now. */
  const ask = async (request: () => Promise<IdText>, show: (encoded: IdText) => void): Promise<boolean> => {
    const turn = ++asked.current;
    fault.value = '';
    try {
      const encoded = await request();
      if (turn !== asked.current) return false;
      keepIds(prompts, encoded);
      forget();
      show(encoded);
      return true;
    } catch (thrown) {
      if (turn === asked.current) fault.value = reasonOf(failureFrom(thrown)) || 'Enter a key first.';
      return false;
    }
  };
  /** Drops what is written. A request for it no longer counts. */
  const forget = () => {
    window.clearTimeout(timer.current);
    asked.current++;
    written.value = null;
    fault.value = '';
    prompts.unread.value = null;
  };
  const readText = () => {
    const { text } = content.peek();
    void ask(
      () => idsOfText(session.connection.peek(), session.model.peek(), text),
      () => undefined,
    );
  };
  const write = (text: string) => {
    forget();
    written.value = text;
    const read = readIds(text);
    if ('fault' in read) {
      fault.value = read.fault;
      prompts.unread.value = async () => false;
      return;
    }
    const request = () => textOfIds(session.connection.peek(), session.model.peek(), read.ids);
    const show = (encoded: IdText) => {
      if (encoded.text !== editor.peek()?.content.text) editor.peek()?.setText(encoded.text);
    };
    let asking: Promise<boolean> | null = null;
    const ends = () => (asking ??= ask(request, show));
    prompts.unread.value = ends;
    timer.current = window.setTimeout(ends, PAUSE_MS);
  };
  // What was changed last counts.
  useEffect(forget, [content.value.text]);
  useEffect(() => {
    if (ids === null) readText();
    return forget;
  }, []);
  return (
    <div class="id-field field">
      <label for={id}>Token ids of the prompt</label>
      <textarea
        id={id}
        rows={2}
        spellcheck={false}
        autocomplete="off"
        placeholder="12, 345 or [12, 345]"
        aria-invalid={fault.value !== ''}
        disabled={isRunning.value}
        value={written.value ?? ids?.join(', ') ?? ''}
        onInput={(event) => write(event.currentTarget.value)}
      />
      <Fault text={fault.value} />
      {fault.value === '' && ids === null && written.value === null && (
        <p class="row">
          <span class="quiet">The text has no known ids, so the text itself is sent.</span>
          <Button text="Read its ids" onClick={readText} />
        </p>
      )}
      {ids !== null && written.value === null && (
        <p class="quiet" role="status">
          {ids.length.toLocaleString('en')} ids are sent as they are.
        </p>
      )}
    </div>
  );
}
