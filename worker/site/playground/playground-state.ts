import { computed, type ReadonlySignal, type Signal, signal } from '@preact/signals';
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Alternative } from '../api/completion-stream.ts';
import type { Parameters } from '../api/request-field.ts';
import { TOKEN_FIELDS } from '../api/whole-choices.ts';
import type { EditorContent, TextEditor } from '../editor/text-editor.ts';
import { canHeal, type Session } from '../store/session.ts';
import { tabSignal, type ValueParts } from '../store/stored-signal.ts';
import { type PlacedTokens, TokenPlacer } from '../tokens/placed-tokens.ts';
import { perplexityOf } from '../tokens/probability.ts';
import { type ChoiceUpdate, Generation } from './generation.ts';
import { DEFAULT_PARAMETERS } from './presets.ts';
import { pageFields, promptOf, requestBody, sentFields } from './request-body.ts';

/** The text, its parameters and the running completion. Lives as long as the page, across views. */
export interface PlaygroundState {
  readonly session: Session;
  readonly content: Signal<EditorContent>;
  readonly parameters: Signal<Parameters>;
  readonly generation: Generation;
  /** Null until the editor is loaded. */
  readonly editor: Signal<TextEditor | null>;
  readonly isRunning: ReadonlySignal<boolean>;
  /** Of the echoed prompt; null without echo. */
  readonly score: Signal<Score | null>;
}

/** How well the model predicts a text. */
export interface Score {
  readonly perplexity: number;
  readonly tokens: number;
}

const EMPTY: EditorContent = { text: '', tokens: [], mark: null };

/** The text is never lost; of the tints, those of the last seconds may be. */
const CONTENT_PARTS: ValueParts<EditorContent> = {
  essenceOf: (content) => ({ ...content, tokens: [] }),
  completed: (content, stored) =>
    content.tokens.length === 0 && content.text.startsWith(stored.text)
      ? { ...content, tokens: stored.tokens }
      : content,
};

export async function openPlayground(session: Session): Promise<PlaygroundState> {
  const [content, parameters] = await Promise.all([
    tabSignal('playground-text', EMPTY, CONTENT_PARTS),
    tabSignal<Parameters>('playground-parameters', DEFAULT_PARAMETERS),
  ]);
  const generation = new Generation(() => performance.now());
  return {
    session,
    content,
    parameters,
    generation,
    editor: signal(null),
    isRunning: computed(() => ['waiting', 'streaming'].includes(generation.phase.value.name)),
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
  const content = { text: editor.content.text, mark: null };
  const fields = { max_tokens: 0, echo: true, ...TOKEN_FIELDS };
  await send(state, editor, requestBody(state.session.model.peek(), content, fields), content);
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

/** Fields that the page sends unless the visitor changes them. */
export const presetOf = ({ session: { access, model } }: PlaygroundState): Parameters =>
  pageFields(canHeal(access.value, model.value));

/** What *Complete* sends of a text, without `stream`. */
export const bodyOf = (
  state: PlaygroundState,
  content: Pick<EditorContent, 'text' | 'mark'>,
): Record<string, unknown> =>
  requestBody(state.session.model.value, content, sentFields(presetOf(state), state.parameters.value));

async function continueText(state: PlaygroundState, editor: TextEditor): Promise<void> {
  await send(state, editor, bodyOf(state, editor.content), editor.content);
}

async function send(
  { session, generation, score }: PlaygroundState,
  editor: TextEditor,
  body: Readonly<Record<string, unknown>>,
  content: Pick<EditorContent, 'text' | 'mark'>,
): Promise<void> {
  const insertion = new Insertion(editor, promptOf(content).prompt.length);
  score.value = null;
  let isEcho = body.echo === true;
  editor.lock();
  await generation.run(
    session.connection.peek(),
    body,
    (update) => {
      // The first update of an echo has the prompt, and nothing else.
      if (isEcho) {
        insertion.tintPrompt(update);
        score.value = scoreOf(update.tokens);
      } else insertion.add(update);
      isEcho = false;
    },
    async () => {
      insertion.write();
      // Moving the cursor costs a layout, too.
      await new Promise((resolve) => setTimeout(resolve));
      editor.endStep(insertion.position);
    },
  );
}

function scoreOf(tokens: ChoiceUpdate['tokens']): Score | null {
  const perplexity = perplexityOf(tokens);
  return perplexity === null ? null : { perplexity, tokens: tokens.length };
}

/** A hidden page has no frames. */
const HIDDEN_WRITE_MS = 250;

/** Writes the updates of one completion into the text, at most once per frame: each costs a layout. */
class Insertion {
  readonly #editor: TextEditor;
  #placer: TokenPlacer;
  /** End of the text so far. */
  position: number;
  #text = '';
  #placed: PlacedTokens[] = [];

  /** @param position end of the prompt */
  constructor(editor: TextEditor, position: number) {
    this.#editor = editor;
    this.position = position;
    this.#placer = new TokenPlacer(position);
  }

  add(update: ChoiceUpdate): void {
    const { index, text, tokens, offsets } = update;
    if (index > 0) return;
    const placed = this.#placer.place(text, tokens, offsets);
    if (text === '') return;
    if (this.#text === '') this.#writeSoon();
    this.#text += text;
    this.#placed.push(...placed);
  }

  /** Tints the prompt, or its end: an echo may have no more of it. */
  tintPrompt({ text, tokens, offsets }: ChoiceUpdate): void {
    this.#placer = new TokenPlacer(this.position - text.length);
    this.#editor.tint(this.#placer.place(text, tokens, offsets));
  }

  #writeSoon(): void {
    if (document.hidden) setTimeout(this.write, HIDDEN_WRITE_MS);
    // The frame itself has the layout and the painting of the last change.
    else requestAnimationFrame(() => setTimeout(this.write));
  }

  write = (): void => {
    if (this.#text === '') return;
    this.#editor.append(this.position, this.#text, this.#placed);
    this.position += this.#text.length;
    this.#text = '';
    this.#placed = [];
  };
}
