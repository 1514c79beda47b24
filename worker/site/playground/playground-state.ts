import { computed, type ReadonlySignal, type Signal, signal } from '@preact/signals';
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Alternative } from '../api/completion-stream.ts';
import type { Parameters } from '../api/request-field.ts';
import type { EditorContent, TextEditor } from '../editor/text-editor.ts';
import type { Session } from '../store/session.ts';
import { storedSignal } from '../store/stored-signal.ts';
import { type PlacedTokens, TokenPlacer } from '../tokens/placed-tokens.ts';
import { perplexityOf } from '../tokens/probability.ts';
import { type ChoiceUpdate, Generation } from './generation.ts';
import { DEFAULT_PARAMETERS } from './presets.ts';
import { promptOf, requestBody } from './request-body.ts';

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
  /** Of the echoed prompt; null without echo. */
  readonly score: Signal<Score | null>;
}

/** How well the model predicts a text. */
export interface Score {
  readonly perplexity: number;
  readonly tokens: number;
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
    score: signal(null),
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

/** Computes the probabilities of the whole text. Generates nothing. */
export async function score(state: PlaygroundState): Promise<void> {
  const editor = state.editor.peek();
  if (editor === null || state.isRunning.peek() || editor.content.text === '') return;
  const { text } = editor.content;
  await send(state, editor, { text, mark: null }, { max_tokens: 0, echo: true });
}

/** Places the insertion mark at the cursor, or removes it. */
export function toggleMark({ editor }: PlaygroundState): boolean {
  const current = editor.peek();
  if (current === null) return false;
  current.placeMark(current.content.mark === null ? current.cursor : null);
  current.focus();
  return true;
}

/** Shows probabilities as underlines instead of colours, or the other way round. */
export function toggleUnderline({ session: { display } }: PlaygroundState): boolean {
  display.value = { ...display.value, tint: display.value.tint === 'underline' ? 'background' : 'underline' };
  return true;
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
  await send(state, editor, editor.content, state.parameters.peek());
}

async function send(
  { session, generation, score }: PlaygroundState,
  editor: TextEditor,
  content: Pick<EditorContent, 'text' | 'mark'>,
  parameters: Parameters,
): Promise<void> {
  const body = requestBody(session.model.peek(), content, parameters);
  const insertion = new Insertion(editor, content, body.echo === true, score);
  score.value = null;
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
  readonly #score: Signal<Score | null>;
  #position: number;

  constructor(
    editor: TextEditor,
    content: Pick<EditorContent, 'text' | 'mark'>,
    echo: boolean,
    score: Signal<Score | null>,
  ) {
    this.#score = score;
    const { prompt } = promptOf(content);
    this.#editor = editor;
    this.#position = prompt.length;
    this.#placer = new TokenPlacer(echo ? 0 : prompt.length);
  }

  add({ index, text, tokens, offsets, promptIds }: ChoiceUpdate): void {
    if (index > 0) return;
    const placed = this.#placer.place(text, tokens, offsets);
    if (promptIds !== null && tokens.length > 0) {
      this.#editor.tint(placed);
      const perplexity = perplexityOf(tokens.map(({ logprob }) => logprob));
      this.#score.value = perplexity === null ? null : { perplexity, tokens: tokens.length };
    } else if (text !== '') {
      this.#editor.append(this.#position, text, placed);
      this.#position += text.length;
    }
  }
}
