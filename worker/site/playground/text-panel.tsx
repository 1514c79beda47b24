import { useSignal, useSignalEffect } from '@preact/signals';
import { Fragment } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { TokenizedText } from '../api/whole-choices.ts';
import type { TextEditor } from '../editor/text-editor.ts';
import { type Session, takeCarried } from '../store/session.ts';
import type { PlacedTokens } from '../tokens/placed-tokens.ts';
import { percent, tintClass } from '../tokens/probability.ts';
import { placedTokens } from '../tokens/token-list.tsx';
import { takeShared } from './arrival.tsx';
import { DisplayBar } from './display-bar.tsx';
import {
  complete,
  listTokens,
  takeChoice,
  toggleMark,
  toggleUnderline,
  usePlayground,
} from './playground-state.ts';
import { EXAMPLES, PRESETS, SAMPLE } from './presets.ts';
import { InspectorPopover, type TokenInspector } from './token-inspector.tsx';

/** The editor of the text. Until it is loaded, the stored text stands in its place. */
export function TextPanel({ inspector }: { readonly inspector: TokenInspector }) {
  const state = usePlayground();
  const host = useRef<HTMLDivElement>(null);
  const isLoaded = useSignal(false);
  // Its cleanup runs with the removal of the view; that of useEffect later, when the editor may have no place
  // any more.
  useLayoutEffect(() => {
    let editor: TextEditor | null = null;
    let closed = false;
    void import('../editor/text-editor.ts').then((module) => {
      if (closed) return;
      editor = new module.TextEditor(host.current!, {
        content: state.content.peek(),
        keys: keysOf(state, inspector),
        onHover: inspector.hover,
        onTap: inspector.tap,
        onMove: inspector.move,
        onChange: () => {
          if (editor === null) return;
          state.content.value = editor.content;
          inspector.change();
        },
      });
      state.editor.value = editor;
      isLoaded.value = true;
      const carried = takeCarried(state.session, '');
      if (carried) editor.setText(carried.map(({ text }) => text).join(''), placed(carried));
      takeLink();
    });
    const takeLink = () => {
      if (editor !== null) void takeShared(state, editor);
    };
    addEventListener('hashchange', takeLink);
    return () => {
      closed = true;
      removeEventListener('hashchange', takeLink);
      state.generation.stop();
      state.editor.value = null;
      editor?.destroy();
    };
  }, [state, inspector]);
  useSignalEffect(() => state.editor.value?.setDisplay(state.session.display.value));
  return (
    <section class="text-panel framed" aria-label="Text">
      <div ref={host} class="text-editor" />
      <DisplayBar />
      {!isLoaded.value && <p class="text-stored">{state.content.peek().text}</p>}
      {isLoaded.value && state.content.value.text === '' && <Examples />}
      <InspectorPopover inspector={inspector} />
    </section>
  );
}

/** Places the tokens of parts that follow each other. */
function placed(parts: readonly TokenizedText[]): PlacedTokens[] {
  let start = 0;
  return parts.flatMap((part) => {
    const offset = start;
    start += part.text.length;
    return placedTokens(part).map(({ from, to, tokens }) => ({
      from: from + offset,
      to: to + offset,
      tokens,
    }));
  });
}

const keysOf = (state: ReturnType<typeof usePlayground>, inspector: TokenInspector) => [
  { key: 'Mod-Enter', run: () => start(state) },
  { key: 'Ctrl-Enter', run: () => start(state) },
  { key: 'Alt-]', run: inspector.walk(1) },
  { key: 'Alt-[', run: inspector.walk(-1) },
  { key: 'Alt-m', run: () => toggleMark(state) },
  { key: 'Alt-u', run: () => toggleUnderline(state) },
  { key: 'Alt-l', run: () => listTokens(state) },
  { key: 'Alt-r', run: () => inspector.showRun() },
  ...[1, 2, 3, 4, 5, 6, 7, 8, 9].map((number) => ({
    key: `Alt-${number}`,
    run: () => takeChoice(state, number - 1),
  })),
  { key: 'ArrowDown', run: inspector.moveRow(1) },
  { key: 'ArrowUp', run: inspector.moveRow(-1) },
  { key: 'Enter', run: inspector.accept },
  { key: 'Tab', run: inspector.accept },
];

function start(state: ReturnType<typeof usePlayground>): boolean {
  void complete(state);
  return true;
}

/** Returns whether the chosen model is the small one that comes with Continuo, as far as that is known. */
const isBuiltIn = ({ access: { value: access }, model }: Session): boolean =>
  access.state === 'accepted' &&
  access.models.some(({ id, root }) => id === model.value && root === 'continuo-mini');

/** What an empty editor offers. */
function Examples() {
  const { editor, parameters, session } = usePlayground();
  const open = ({ text, preset }: (typeof EXAMPLES)[number]) => {
    parameters.value = PRESETS.find(({ name }) => name === preset)!.parameters;
    editor.peek()?.setText(text);
    editor.peek()?.focus();
  };
  return (
    <div class="examples">
      <h2>Write the beginning of a text</h2>
      <p class="quiet">
        Continuo is an endpoint for text completions: a base model continues your text, token by token.{' '}
        <a href="/docs/guides/getting-started">Getting started</a> shows how to send requests and serve your
        own model. Or start from one of these:
      </p>
      <ul>
        {EXAMPLES.map((example) => (
          <li key={example.title}>
            <button type="button" class="card example" onClick={() => open(example)}>
              <strong>{example.title}</strong>
              <code>{example.text}</code>
            </button>
          </li>
        ))}
      </ul>
      <Sample />
      {/* Last, because it arrives late and must move nothing. */}
      {isBuiltIn(session) && (
        <p class="quiet">
          This model is a toy of 12.6 M parameters: it tells simple stories and writes bits of Python.
        </p>
      )}
    </div>
  );
}

/** What the tints mean, before the first completion. */
const Sample = () => (
  <figure class="sample">
    <p class="token-text">
      {SAMPLE.prompt}
      {SAMPLE.tokens.map((word, index) => (
        <Fragment key={word}>
          {' '}
          <span class={tintClass(SAMPLE.logprobs[index]!)} title={percent(SAMPLE.logprobs[index]!)}>
            {word}
          </span>
        </Fragment>
      ))}
    </p>
    <figcaption class="quiet">
      Tokens of at most 25 % are tinted: the less likely, the stronger. Point at a token of your text, or tap
      it, to see what else the model considered.
    </figcaption>
  </figure>
);
