import { useLayoutEffect, useRef } from 'preact/hooks';
import { Button } from '../controls/button.tsx';
import { EXAMPLES } from '../playground/presets.ts';
import { branch, importTree, plant } from './tree-commands.ts';
import type { TreeState } from './tree-state.ts';

/** Asks for the prompt of a new tree. */
export function TreeStart({ state }: { readonly state: TreeState }) {
  const { prompt } = state;
  const field = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => field.current?.focus(), []);
  const start = (text: string) => {
    plant(state, text);
    branch(state, state.library.editor.peek()!);
  };
  const submit = (event: Event) => {
    event.preventDefault();
    if (prompt.value === '') return;
    start(prompt.value);
    prompt.value = '';
  };
  return (
    <div class="empty tree-start">
      <h1>Tree</h1>
      <p class="quiet">
        Write the beginning of a text. The model continues it in several branches, and each branch can branch
        again. Trees stay in this browser.
      </p>
      <form
        class="stack"
        onSubmit={submit}
        onKeyDown={(event) => event.key === 'Enter' && (event.ctrlKey || event.metaKey) && submit(event)}
      >
        <div class="field">
          <textarea
            ref={field}
            rows={5}
            aria-label="Prompt"
            placeholder="Once upon a time"
            value={prompt.value}
            onInput={(event) => (prompt.value = event.currentTarget.value)}
          />
        </div>
        <div class="row">
          <Button
            class="primary"
            icon="branch"
            text="Start the tree"
            type="submit"
            disabled={prompt.value === ''}
          />
          <Button text="Import a tree…" onClick={() => void importTree(state)} />
        </div>
      </form>
      <h2 class="quiet">Or start with an example</h2>
      <ul class="tree-examples">
        {EXAMPLES.map(({ text }) => (
          <li key={text}>
            <button type="button" class="card branch-card tree-example" onClick={() => start(text)}>
              <span class="branch-text">{text}</span>
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
