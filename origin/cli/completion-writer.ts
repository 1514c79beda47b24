import type { Color, Terminal } from '@continuo/origin/terminal/terminal.ts';
import type { Chunk } from './api.ts';

type Choice = Chunk['choices'][number];
type Logprobs = NonNullable<Choice['logprobs']>;

/** Colors of a token by its probability, from the most likely on. */
const COLORS: readonly { readonly least: number; readonly color: Color; readonly label: string }[] = [
  { least: 0.75, color: 'green', label: '75 % or more' },
  { least: 0.25, color: 'yellow', label: '25 % or more' },
  { least: 0.05, color: 'magenta', label: '5 % or more' },
  { least: 0, color: 'red', label: 'less' },
];

const colorOf = (logprob: number): Color =>
  COLORS.find(({ least }) => Math.exp(logprob) >= least)?.color ?? 'red';

/** Writes choices one after the other: the first unfinished one as it arrives, the others in turn. */
export class CompletionWriter {
  readonly #terminal: Terminal;
  readonly #choices: { text: string; finished: boolean }[];
  readonly #logprobs: boolean;
  #current = 0;
  /** Choices with a title so far. */
  #titled = 0;
  #atLineStart = true;

  /** @param logprobs true = colors tokens, or writes one line per token if there are no colors */
  constructor(terminal: Terminal, choices: number, logprobs: boolean) {
    this.#terminal = terminal;
    this.#choices = Array.from({ length: choices }, () => ({ text: '', finished: false }));
    this.#logprobs = logprobs;
  }

  push(choice: Choice): void {
    const held = this.#choices[choice.index];
    if (held === undefined) return;
    held.text += this.#textOf(choice);
    if (choice.finish_reason !== null) held.finished = true;
    this.#flush();
  }

  /** Ends the last line on a terminal, and explains the colors. In a pipe, the text stays as it is. */
  end(): void {
    const { isInteractive, hasColor } = this.#terminal;
    if (isInteractive && !this.#atLineStart) this.#write('\n');
    if (!this.#logprobs || !hasColor) return;
    const legend = COLORS.map(({ color, label }) => this.#terminal.paint(color, label)).join(', ');
    this.#write(`Probability: ${legend}\n`);
  }

  #flush(): void {
    for (; ; this.#current += 1) {
      const held = this.#choices[this.#current];
      if (held === undefined) return;
      if (held.text !== '') this.#writeChoice(held);
      if (!held.finished) return;
    }
  }

  #writeChoice(held: { text: string }): void {
    if (this.#choices.length > 1 && this.#titled === this.#current) {
      this.#titled += 1;
      this.#write(`${this.#atLineStart ? '' : '\n'}--- ${this.#titled} of ${this.#choices.length} ---\n`);
    }
    this.#write(held.text);
    held.text = '';
  }

  #write(text: string): void {
    this.#atLineStart = text.endsWith('\n');
    this.#terminal.write(text);
  }

  #textOf({ text, logprobs }: Choice): string {
    if (!this.#logprobs || logprobs === null) return this.#logprobs && !this.#terminal.hasColor ? '' : text;
    if (!this.#terminal.hasColor) return tokenLines(logprobs);
    return pieces(text, logprobs)
      .map(({ part, logprob }) => (logprob === null ? part : this.#terminal.paint(colorOf(logprob), part)))
      .join('');
  }
}

const percent = (logprob: number | null): string =>
  logprob === null ? '     –' : `${(100 * Math.exp(logprob)).toFixed(1).padStart(5)} %`;

/** One line per token: its probability, the token as JSON, and its alternatives. */
function tokenLines({ tokens, token_logprobs, top_logprobs }: Logprobs): string {
  return tokens
    .map((token, index) => {
      const others = Object.entries(top_logprobs[index] ?? {}).filter(([text]) => text !== token);
      const alternatives = others.map(([text, logprob]) => `${percent(logprob)} ${JSON.stringify(text)}`);
      return `${[`${percent(token_logprobs[index] ?? null)}  ${JSON.stringify(token)}`, ...alternatives].join('  ')}\n`;
    })
    .join('');
}

/** Cuts a chunk's text at its tokens. Tokens of one character share an offset, so some pieces are empty. */
function pieces(text: string, { token_logprobs, text_offset }: Logprobs) {
  if (text_offset.length === 0) return [{ part: text, logprob: null }];
  const characters = Array.from(text);
  const start = text_offset[0] ?? 0;
  return text_offset.map((offset, index) => ({
    part: characters
      .slice(offset - start, (text_offset[index + 1] ?? Number.POSITIVE_INFINITY) - start)
      .join(''),
    logprob: token_logprobs[index] ?? null,
  }));
}
