import { sseData } from '@continuo/shared/framing.ts';
import type { EventOf, GenerationEvent, TokenLogprob } from '@continuo/shared/generation.ts';
import { MAX_LISTED_LOGPROBS } from '@continuo/shared/logprob.ts';
import type { OriginModel } from '@continuo/shared/origin-model.ts';
import type { NativeOptions } from '../../dialects/native-request.ts';
import type { ParsedCompletion } from '../../dialects/parsed-completion.ts';
import { type ChoiceDelta, ChoiceDeltas, type Finish } from './choice-deltas.ts';
import { timingsObject } from './completion-json.ts';
import { shownLogprob } from './float32.ts';
import { nativeSettings } from './native-settings.ts';
import { lossyText } from './token-text.ts';

/** What one choice has generated so far. */
interface Choice {
  readonly content: string[];
  readonly ids: number[];
  readonly tokens: TokenLogprob[];
  hasNewLine: boolean;
  predicted: number;
  finish: Finish | null;
}

type Done = EventOf<'done'>;

/** Writes the events of one generation in the shape of llama.cpp's own API, as one body or events. */
export class NativeFormat {
  readonly #parsed: ParsedCompletion;
  readonly #model: OriginModel;
  readonly #options: NativeOptions;
  readonly #deltas: ChoiceDeltas;
  readonly #choices: readonly Choice[];
  /** By prompt. */
  readonly #promptTokens: number[] = [];
  readonly #cachedTokens: number[] = [];
  #cutPrompts: readonly number[] = [];

  constructor(parsed: ParsedCompletion, model: OriginModel, options: NativeOptions) {
    const { prompts, choices } = parsed.generation;
    this.#parsed = parsed;
    this.#model = model;
    this.#options = options;
    this.#deltas = new ChoiceDeltas(parsed.response, choices);
    this.#choices = Array.from({ length: prompts.length * choices }, () => ({
      content: [],
      ids: [],
      tokens: [],
      hasNewLine: false,
      predicted: 0,
      finish: null,
    }));
  }

  /** Takes an event of a plain response. */
  add(event: GenerationEvent): void {
    for (const delta of this.#take(event)) {
      const choice = this.#choices[delta.choice];
      choice?.content.push(delta.text);
      for (const id of delta.tokenIds ?? []) choice?.ids.push(id);
      for (const token of delta.tokens) choice?.tokens.push(token);
    }
  }

  /** Returns the plain response: an object, or a list if there are several choices. */
  end(done: Done): string {
    const results = this.#choices.map((_, index) => this.#final(index, done));
    return JSON.stringify(results.length === 1 ? results[0] : results);
  }

  /** Returns the SSE text of events that arrived together; '' if they add nothing to the stream. */
  write(events: readonly GenerationEvent[]): string {
    const objects = events.flatMap((event) =>
      event.type === 'done'
        ? this.#choices.map((_, index) => this.#final(index, event))
        : this.#take(event)
            .filter(({ text, tokenIds, tokens }) => text !== '' || tokenIds !== null || tokens.length > 0)
            .map((delta) => this.#partial(delta)),
    );
    return objects.map(sseData).join('');
  }

  #take(event: GenerationEvent): readonly ChoiceDelta[] {
    if (event.type === 'accepted') {
      this.#promptTokens.push(...event.promptTokens);
      this.#cutPrompts = event.cutPrompts ?? [];
    }
    if (event.type === 'started') this.#cachedTokens[event.prompt] = event.cachedTokens;
    if (event.type !== 'token' && event.type !== 'finish') return [];
    const choice = this.#choices[event.choice];
    if (choice === undefined) return [];
    choice.predicted = event.completionTokens;
    const deltas = this.#deltas.of(event);
    for (const { text, finish } of deltas) {
      choice.hasNewLine ||= text.includes('\n');
      choice.finish ??= finish;
    }
    return deltas;
  }

  #partial({ choice, text, tokenIds, tokens }: ChoiceDelta): Record<string, unknown> {
    return {
      index: choice,
      content: text,
      tokens: tokenIds ?? [],
      stop: false,
      tokens_predicted: this.#choices[choice]?.predicted ?? 0,
      tokens_evaluated: this.#promptTokens[this.#promptOf(choice)] ?? 0,
      ...this.#probabilities(tokens),
    };
  }

  /** Returns the last object of a choice. In a stream its text and tokens have been sent before. */
  #final(index: number, done: Done): Record<string, unknown> {
    const model = this.#model;
    const { model: name } = this.#parsed.response;
    const { content, ids, tokens, hasNewLine, finish } = this.#choices[index]!;
    const usage = this.#usageOf(index, done);
    const stopReason = finish?.stopReason;
    const result = {
      index,
      content: content.join(''),
      tokens: ids,
      stop: true,
      model: name,
      tokens_predicted: usage.completionTokens,
      tokens_evaluated: usage.promptTokens,
      generation_settings: { model: name, ...nativeSettings(this.#parsed, model) },
      has_new_line: hasNewLine,
      truncated:
        this.#cutPrompts.includes(this.#promptOf(index)) ||
        (finish?.reason === 'length' && usage.promptTokens + usage.completionTokens >= model.contextLength),
      stop_type: stopType(finish),
      stopping_word: typeof stopReason === 'string' ? stopReason : '',
      tokens_cached: usage.cacheUnknown ? undefined : usage.cachedTokens,
      timings: timingsObject({ usage, timings: done.timings }),
      ...(this.#parsed.response.stream ? {} : this.#probabilities(tokens)),
    };
    const { responseFields } = this.#options;
    return responseFields.length === 0 ? result : selected(result, responseFields);
  }

  #promptOf(choice: number): number {
    return Math.floor(choice / this.#parsed.generation.choices);
  }

  /** Returns the usage of one choice. Before its end, an upstream may only estimate the tokens. */
  #usageOf(index: number, { usage }: Done): Done['usage'] {
    const prompt = this.#promptOf(index);
    const { prompts } = this.#parsed.generation;
    const completionTokens =
      this.#choices.length === 1 ? usage.completionTokens : (this.#choices[index]?.predicted ?? 0);
    if (prompts.length === 1) return { ...usage, completionTokens };
    const promptTokens = this.#promptTokens[prompt] ?? 0;
    return { ...usage, promptTokens, cachedTokens: this.#cachedTokens[prompt] ?? 0, completionTokens };
  }

  #probabilities(tokens: readonly TokenLogprob[]): { completion_probabilities?: unknown[] } {
    const count = this.#parsed.response.listedLogprobs ? MAX_LISTED_LOGPROBS : this.#options.probabilities;
    const shown = tokens.filter(({ hidden }) => !hidden);
    if (count === null || shown.length === 0) return {};
    return {
      completion_probabilities: shown.map(({ id, bytes, logprob, topLogprobs }) => ({
        ...tokenObject(id, bytes, logprob ?? 0),
        top_logprobs: (topLogprobs ?? []).slice(0, count).map((top) => tokenObject(...top)),
      })),
    };
  }
}

const tokenObject = (id: number, bytes: string, logprob: number) => ({
  id,
  token: lossyText(bytes),
  bytes: Array.from(bytes, (unit) => unit.charCodeAt(0)),
  logprob: shownLogprob(logprob),
});

/** A stop token that is not the model's own also counts as the end of the text. */
function stopType(finish: Finish | null): 'none' | 'eos' | 'limit' | 'word' {
  if (finish === null) return 'none';
  if (finish.reason === 'length') return 'limit';
  return typeof finish.stopReason === 'string' ? 'word' : 'eos';
}

/** Returns the members at these paths, under the whole path as name. Unknown paths are left out. */
function selected(result: Readonly<Record<string, unknown>>, paths: readonly string[]) {
  const members = paths.map((path): [string, unknown] => {
    const value = path
      .split('/')
      .reduce<unknown>(
        (outer, name) =>
          typeof outer === 'object' && outer !== null && Object.hasOwn(outer, name)
            ? (outer as Record<string, unknown>)[name]
            : undefined,
        result,
      );
    return [path, value];
  });
  return Object.fromEntries(members.filter(([, value]) => value !== undefined));
}
