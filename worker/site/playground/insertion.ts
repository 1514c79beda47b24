import type { TextEditor } from '../editor/text-editor.ts';
import { type PlacedTokens, TokenPlacer } from '../tokens/placed-tokens.ts';
import type { ChoiceUpdate } from './generation.ts';

/** A hidden page has no frames. */
const HIDDEN_WRITE_MS = 250;

/** Writes the updates of one completion into the text, at most once per frame: each costs a layout. */
export class Insertion {
  readonly #editor: TextEditor;
  #placer: TokenPlacer;
  /** End of the text so far. */
  position: number;
  #text = '';
  #placed: PlacedTokens[] = [];
  readonly #run: string;

  /**
   * @param position end of the prompt
   * @param run names the run in the text
   */
  constructor(editor: TextEditor, position: number, run: string) {
    this.#editor = editor;
    this.position = position;
    this.#run = run;
    this.#placer = new TokenPlacer(position);
  }

  add(update: ChoiceUpdate): void {
    const { index, text, tokens, offsets } = update;
    if (index > 0) return;
    const placed = this.#placer.place(text, tokens, offsets);
    if (text === '') return;
    if (this.#text === '') this.#writeSoon();
    this.#text += text;
    this.#placed.push(...placed.map((place) => ({ ...place, run: this.#run })));
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
