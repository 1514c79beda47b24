import { type WholeChoice, WholeChoices } from '../api/whole-choices.ts';
import type { PlacedTokens } from '../tokens/placed-tokens.ts';
import { placedTokens } from '../tokens/token-list.tsx';
import type { ChoiceUpdate } from './generation.ts';

/** Several continuations of one text, of which one can be taken. */
export interface OfferedChoices {
  /** Names the run in the text. */
  readonly run: string;
  /** The text that they continue, and where. */
  readonly text: string;
  readonly position: number;
  readonly choices: readonly WholeChoice[];
}

/** Which of the choices the text has; null = none. `length` is that of its text. */
export interface Taken {
  readonly index: number | null;
  readonly length: number;
}

const textWith = ({ text, position }: OfferedChoices, added: string): string =>
  text.slice(0, position) + added + text.slice(position);

/** Returns which of the choices the text has now; null if the text has changed otherwise. */
export function takenOf(offered: OfferedChoices, text: string): Taken | null {
  if (text === offered.text) return { index: null, length: 0 };
  const index = offered.choices.findIndex((choice) => textWith(offered, choice.text) === text);
  return index < 0 ? null : { index, length: offered.choices[index]!.text.length };
}

/** Returns the tokens of a choice at their places in the text that takes it. */
export const placedChoice = ({ run, position, choices }: OfferedChoices, index: number): PlacedTokens[] =>
  placedTokens(choices[index]!).map(({ from, to, tokens }) => ({
    from: from + position,
    to: to + position,
    tokens,
    run,
  }));

/** Time between two views of one choice that arrives, in milliseconds. */
const SHOW_MS = 100;

/**
 * Shows the choices of one run as they arrive, one in each task: the browser lays out all of a text that has
 * grown.
 */
export class ChoiceCollector {
  readonly #whole: WholeChoices;
  readonly #show: (choices: readonly WholeChoice[]) => void;
  /** Code points of the echoed prompt by choice; null = there is no echo. */
  readonly #echoed: Map<number, number> | null;
  readonly #n: number;
  /** What is shown. */
  #shown: readonly WholeChoice[];
  /** Choices that have grown since they were shown. */
  readonly #grown = new Set<number>();
  #timer = 0;

  constructor(n: number, isEcho: boolean, show: (choices: readonly WholeChoice[]) => void) {
    this.#n = n;
    this.#whole = new WholeChoices(n);
    this.#shown = this.#whole.choices;
    this.#echoed = isEcho ? new Map() : null;
    this.#show = show;
  }

  add(update: ChoiceUpdate): void {
    const { index, text, offsets } = update;
    // The first update of an echo has the prompt, and nothing else.
    if (this.#echoed !== null && !this.#echoed.has(index)) {
      this.#echoed.set(index, Array.from(text).length);
      return;
    }
    const before = this.#echoed?.get(index) ?? 0;
    this.#whole.add({ ...update, offsets: offsets.map((offset) => offset - before) });
    this.#grown.add(index);
    this.#timer ||= window.setTimeout(this.#showNext, SHOW_MS / this.#n);
  }

  #showNext = (): void => {
    this.#timer = 0;
    const [next] = this.#grown;
    if (next === undefined) return;
    this.#grown.delete(next);
    this.#shown = this.#shown.with(next, this.#whole.choices[next]!);
    this.#show(this.#shown);
    if (this.#grown.size > 0) this.#timer = window.setTimeout(this.#showNext, SHOW_MS / this.#n);
  };

  /** Shows the rest. */
  async end(): Promise<void> {
    while (this.#grown.size > 0) {
      window.clearTimeout(this.#timer);
      this.#showNext();
      await new Promise((resolve) => setTimeout(resolve));
    }
    // None may have arrived.
    this.#show(this.#shown);
  }
}
