import type { ResponseOptions } from '../../dialects/parsed-completion.ts';
import { type ChoiceDelta, type Finish, NOTHING } from './choice-deltas.ts';
import { appendLogprobs, type Logprobs } from './openai-logprobs.ts';

type Whole = { -readonly [K in keyof ChoiceDelta]: ChoiceDelta[K] };

const emptyLogprobs = ({ tokenIds, rowMembers }: ResponseOptions): Logprobs => ({
  tokens: [],
  tokenLogprobs: [],
  top: [],
  tokenIds,
  textOffset: [],
  rows: rowMembers.map((member) => [member, []]),
});

/** Sums deltas to whole choices. */
export class ChoiceCollector {
  readonly #options: ResponseOptions;
  /** Candidates per prompt. */
  readonly #candidates: number;
  readonly #choices: Whole[];
  readonly #texts: string[][];
  readonly #ids: number[][];

  constructor(options: ResponseOptions, prompts: number, candidates: number) {
    this.#options = options;
    this.#candidates = candidates;
    const length = prompts * candidates;
    this.#texts = Array.from({ length }, () => []);
    this.#ids = Array.from({ length }, () => []);
    this.#choices = Array.from({ length }, (_, choice) => ({
      ...NOTHING,
      choice,
      logprobs: options.logprobs === null ? null : emptyLogprobs(options),
    }));
  }

  add(delta: ChoiceDelta): void {
    const whole = this.#choices[delta.choice];
    if (whole === undefined) return;
    this.#texts[delta.choice]?.push(delta.text);
    for (const id of delta.tokenIds ?? []) this.#ids[delta.choice]?.push(id);
    if (whole.logprobs && delta.logprobs) appendLogprobs(whole.logprobs, delta.logprobs);
    whole.promptTokenIds ??= delta.promptTokenIds;
    whole.promptLogprobs ??= delta.promptLogprobs;
    whole.finish ??= delta.finish;
  }

  /** Returns the choices of the response in order: all candidates of each prompt, or the best n. */
  chosen(): readonly ChoiceDelta[] {
    const whole = this.#choices.map((choice, index) => ({
      ...choice,
      text: this.#texts[index]?.join('') ?? '',
      tokenIds: this.#options.tokenIds ? (this.#ids[index] ?? []) : null,
    }));
    if (!this.#options.rank) return whole;
    const prompts = Map.groupBy(whole, ({ choice }) => Math.floor(choice / this.#candidates));
    return [...prompts.values()].flatMap((candidates) => best(candidates, this.#options.n));
  }
}

/** Mean logprob per generated token; 0 for a choice without tokens. */
const mean = (finish: Finish | null): number =>
  finish === null || finish.completionTokens === 0 ? 0 : finish.score / finish.completionTokens;

/** Returns the n candidates with the highest mean logprob, best first; ties keep their order. */
function best(candidates: readonly ChoiceDelta[], n: number): readonly ChoiceDelta[] {
  return candidates.toSorted((left, right) => mean(right.finish) - mean(left.finish)).slice(0, n);
}
