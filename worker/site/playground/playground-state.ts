import { computed, type ReadonlySignal, type Signal, signal } from '@preact/signals';
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Alternative } from '../api/completion-stream.ts';
import type { EditorContent, TextEditor } from '../editor/text-editor.ts';
import type { Session } from '../store/session.ts';
import { storedSignal } from '../store/stored-signal.ts';
import { type PlacedTokens, TokenPlacer } from '../tokens/placed-tokens.ts';
import { type ChoiceUpdate, Generation } from './generation.ts';
import { DEFAULT_PARAMETERS } from './presets.ts';
import { type Parameters, promptOf, requestBody } from './request-body.ts';

/** The text, its parameters and the running completion. Lives as long as the page, so that views can be changed. */
export interface PlaygroundState {
  readonly session: Session;
  readonly content: Signal<EditorContent>;
  readonly parameters: Signal<Parameters>;
  readonly generation: Generation;
  /** Null until the editor is loaded. */
  readonly editor: Signal<TextEditor | null>;
  readonly isRunning: ReadonlySignal<boolean>;
  readonly canUndo: Signal<boolean>;
}

const EMPTY: EditorContent = { text: '', tokens: [], mark: null };

export async function openPlayground(session: Session): Promise<PlaygroundState> {
  const [content, parameters] = await Promise.all([
    storedSignal('playground-text', EMPTY),
    storedSignal<Parameters>('playground-parameters', DEFAULT_PARAMETERS),
  ]);
  const generation = new Generation(() => performance.now());
  return {
    session,
    content,
    parameters,
    generation,
    editor: signal(null),
    isRunning: computed(() => ['waiting', 'streaming'].includes(generation.phase.value.name)),
    canUndo: signal(false),
  };
}

export const PlaygroundContext = createContext<PlaygroundState | null>(null);

export function usePlayground(): PlaygroundState {
  const state = useContext(PlaygroundContext);
  if (state === null) throw new Error('There is no PlaygroundContext.Provider.');
  return state;
}

/** Continues the text at its end, or at the mark. Does nothing while a completion runs. */
export async function complete(state: PlaygroundState): Promise<void> {
  const editor = state.editor.peek();
  if (editor === null || state.isRunning.peek() || editor.content.text === '') return;
  editor.beginStep();
  await continueText(state, editor);
}

/** Replaces a token by an alternative, drops what followed it, and continues from there. */
export async function chooseAlternative(
  state: PlaygroundState,
  tokens: PlacedTokens,
  alternative: Alternative,
): Promise<void> {
  const editor = state.editor.peek();
  if (editor === null) return;
  state.generation.stop();
  await state.generation.ended;
  const { text, mark } = editor.content;
  const end = mark !== null && mark >= tokens.to ? mark : text.length;
  editor.beginStep();
  editor.replace(tokens.from, end, '');
  editor.append(tokens.from, alternative.name, [
    { from: tokens.from, to: tokens.from + alternative.name.length, tokens: [chosen(tokens, alternative)] },
  ]);
  await continueText(state, editor);
}

const chosen = ({ tokens: [first] }: PlacedTokens, alternative: Alternative) => ({
  ...first!,
  ...alternative,
  // The response names the ids of chosen tokens only.
  id: null,
});

async function continueText(state: PlaygroundState, editor: TextEditor): Promise<void> {
  const { session, generation } = state;
  const { content } = editor;
  const body = requestBody(session.model.peek(), content, state.parameters.peek());
  const insertion = new Insertion(editor, content, body.echo === true);
  editor.setReadOnly(true);
  try {
    await generation.run(session.connection.peek(), body, (update) => insertion.add(update));
  } finally {
    editor.endStep();
    editor.setReadOnly(false);
  }
}

/** Writes the updates of one completion into the text. */
class Insertion {
  readonly #editor: TextEditor;
  readonly #placer: TokenPlacer;
  #position: number;

  constructor(editor: TextEditor, content: EditorContent, echo: boolean) {
    const { prompt } = promptOf(content);
    this.#editor = editor;
    this.#position = prompt.length;
    this.#placer = new TokenPlacer(echo ? 0 : prompt.length);
  }

  add({ index, text, tokens, offsets, promptIds }: ChoiceUpdate): void {
    if (index > 0) return;
    const placed = this.#placer.place(text, tokens, offsets);
    if (promptIds !== null) this.#editor.tint(placed);
    else if (text !== '') {
      this.#editor.append(this.#position, text, placed);
      this.#position += text.length;
    }
  }
}
