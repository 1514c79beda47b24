import { computed, type ReadonlySignal, type Signal, signal } from '@preact/signals';
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Alternative } from '../api/completion-stream.ts';
import type { Parameters } from '../api/request-field.ts';
import { TOKEN_FIELDS } from '../api/whole-choices.ts';
import { focusFault } from '../controls/focus-fault.ts';
import { type Run, RunRecorder } from '../copy/run.ts';
import type { EditorContent, TextEditor } from '../editor/text-editor.ts';
import { canHeal, type Session } from '../store/session.ts';
import { tabSignal, type ValueParts } from '../store/stored-signal.ts';
import type { PlacedTokens } from '../tokens/placed-tokens.ts';
import { perplexityOf } from '../tokens/probability.ts';
import { ChoiceCollector, type OfferedChoices, placedChoice, takenOf } from './choices.ts';
import { type ChoiceUpdate, Generation } from './generation.ts';
import { continueIds, type IdPrompts, idsOf, openIdPrompts } from './id-prompt.ts';
import { Insertion } from './insertion.ts';
import { DEFAULT_PARAMETERS } from './presets.ts';
import { pageFields, requestBody, sentFields } from './request-body.ts';
import { keepRun } from './runs.ts';

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
  /** The dialog that is open; null = none. */
  readonly dialog: Signal<'tokens' | 'copy' | 'share' | Run | null>;
  /** What a link has brought, or why it brought nothing. */
  readonly arrival: Signal<
    { readonly made: string; readonly model: string } | { readonly fault: string } | null
  >;
  /** The choices of the last request, if there are several. */
  readonly choices: Signal<OfferedChoices | null>;
  /** Texts whose token ids are sent in their place. */
  readonly ids: IdPrompts;
  /** The last requests for completions, the last one last. */
  readonly runs: Signal<readonly Run[]>;
  /** Returns a seed for a run without one, so that it can be repeated. */
  readonly drawSeed: () => number;
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
  const [content, parameters, runs] = await Promise.all([
    tabSignal('playground-text', EMPTY, CONTENT_PARTS),
    tabSignal<Parameters>('playground-parameters', DEFAULT_PARAMETERS),
    tabSignal<readonly Run[]>('playground-runs', []),
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
    dialog: signal(null),
    arrival: signal(null),
    choices: signal(null),
    ids: openIdPrompts(),
    runs,
    drawSeed: () => crypto.getRandomValues(new Uint32Array(1))[0]!,
  };
}

export const PlaygroundContext = createContext<PlaygroundState | null>(null);

export function usePlayground(): PlaygroundState {
  const state = useContext(PlaygroundContext);
  if (state === null) throw new Error('There is no PlaygroundContext.Provider.');
  return state;
}

/** Returns the editor with a text to send; null while a completion runs, and if written ids have no text. */
async function readyEditor({ editor, ids, isRunning }: PlaygroundState): Promise<TextEditor | null> {
  const isRead = (await ids.unread.peek()?.()) ?? true;
  const ready = editor.peek();
  return isRead && !isRunning.peek() && ready?.content.text ? ready : null;
}

/**
 * Continues the text at its end, or at the mark. Does nothing while a completion runs, or a parameter shows a
 * fault.
 */
export async function complete(state: PlaygroundState): Promise<void> {
  const editor = await readyEditor(state);
  if (editor === null || focusFault()) return;
  editor.beginStep();
  await continueText(state, editor);
}

/** Computes the probabilities of the whole text. Generates nothing. */
export async function score(state: PlaygroundState): Promise<void> {
  const editor = await readyEditor(state);
  if (editor === null) return;
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

/** Shows all tokens of the text. */
export function listTokens({ dialog, content }: PlaygroundState): boolean {
  if (content.peek().text !== '') dialog.value = 'tokens';
  return true;
}

/** Replaces a token by an alternative, drops what followed it, and continues from there. */
export async function chooseAlternative(
  state: PlaygroundState,
  tokens: PlacedTokens,
  alternative: Alternative,
): Promise<void> {
  const editor = state.editor.peek();
  if (editor === null || focusFault()) return;
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
export const presetOf = ({ session: { access, model }, ids, content }: PlaygroundState): Parameters =>
  pageFields(canHeal(access.value, model.value) && idsOf(ids, content.value) === null);

/** What *Complete* sends of a text, without `stream`. */
export const bodyOf = (
  state: PlaygroundState,
  content: Pick<EditorContent, 'text' | 'mark'>,
): Record<string, unknown> => {
  const fields = sentFields(presetOf(state), state.parameters.value);
  const body = requestBody(state.session.model.value, content, fields);
  const prompt = idsOf(state.ids, content);
  return prompt === null ? body : { ...body, prompt };
};

async function continueText(state: PlaygroundState, editor: TextEditor): Promise<void> {
  const body = bodyOf(state, editor.content);
  state.choices.value = null;
  const before = editor.content;
  await send(state, editor, 'seed' in body ? body : { ...body, seed: state.drawSeed() }, before);
  continueIds(state.ids, before, editor.content);
}

let lastRun = 0;

/** @param content the text that is completed, or scored if nothing is generated */
async function send(
  state: PlaygroundState,
  editor: TextEditor,
  body: Readonly<Record<string, unknown>>,
  content: Pick<EditorContent, 'text' | 'mark'>,
): Promise<void> {
  const { session, generation, score } = state;
  const connection = session.connection.peek();
  const at = Date.now();
  const key = `${at}-${++lastRun}`;
  const recorder = new RunRecorder({ key, at, dialect: connection.dialect, body });
  const writer = writerOf(state, editor, body, content, key);
  score.value = null;
  editor.lock();
  await generation.run(
    connection,
    body,
    (update) => {
      recorder.add(update);
      if (update.type === 'choice') writer.add(update);
    },
    async (isWhole) => {
      const position = await writer.end();
      if (body.max_tokens !== 0) keepRun(state.runs, recorder.end(isWhole));
      // Moving the cursor costs a layout, too.
      await new Promise((resolve) => setTimeout(resolve));
      editor.endStep(position);
    },
  );
}

/** Where the updates of a run go. */
interface UpdateWriter {
  add(update: ChoiceUpdate): void;
  /** Completes what is shown. Returns the end of what was written into the text. */
  end(): number | Promise<number>;
}

/** One choice is written into the text; several are offered beside it. */
function writerOf(
  state: PlaygroundState,
  editor: TextEditor,
  body: Readonly<Record<string, unknown>>,
  content: Pick<EditorContent, 'text' | 'mark'>,
  run: string,
): UpdateWriter {
  const position = content.mark ?? content.text.length;
  const n = Number(body.n ?? 1);
  if (n <= 1) return insertionOf(state, new Insertion(editor, position, run), body.echo === true);
  const offered = { run, position, text: content.text };
  const collector = new ChoiceCollector(n, body.echo === true, (choices) => {
    state.choices.value = { ...offered, choices };
  });
  return {
    add: (update) => collector.add(update),
    end: async () => {
      await collector.end();
      return position;
    },
  };
}

function insertionOf({ score }: PlaygroundState, insertion: Insertion, isEcho: boolean): UpdateWriter {
  let isPrompt = isEcho;
  return {
    add: (update) => {
      // The first update of an echo has the prompt, and nothing else.
      if (isPrompt) {
        insertion.tintPrompt(update);
        score.value = scoreOf(update.tokens);
      } else insertion.add(update);
      isPrompt = false;
    },
    end: () => {
      insertion.write();
      return insertion.position;
    },
  };
}

/** Puts a choice into the text, in place of one that was taken before, as one step. */
export function takeChoice(state: PlaygroundState, index: number): boolean {
  const offered = state.choices.peek();
  const editor = state.editor.peek();
  if (offered === null || editor === null || state.isRunning.peek()) return false;
  const text = offered.choices[index]?.text ?? '';
  const taken = takenOf(offered, editor.content.text);
  if (text === '' || taken === null || taken.index === index) return false;
  const { position } = offered;
  editor.beginStep();
  if (taken.length > 0) editor.replace(position, position + taken.length, '');
  editor.append(position, text, placedChoice(offered, index));
  editor.endStep(position + text.length);
  continueIds(state.ids, { text: offered.text, mark: null }, editor.content);
  return true;
}

/** Shows the request that generated tokens; without any, the last one. */
export function showRun({ dialog, runs }: PlaygroundState, tokens: PlacedTokens | null): boolean {
  const all = runs.peek();
  const run = tokens === null ? all.at(-1) : all.find(({ key }) => key === tokens.run);
  if (run === undefined) return false;
  dialog.value = run;
  return true;
}

function scoreOf(tokens: ChoiceUpdate['tokens']): Score | null {
  const perplexity = perplexityOf(tokens);
  return perplexity === null ? null : { perplexity, tokens: tokens.length };
}
