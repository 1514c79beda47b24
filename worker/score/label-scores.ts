import { ApiError } from '@continuo/shared/errors.ts';
import type { EventOf, GenerationEvent, TopLogprob } from '@continuo/shared/generation.ts';
import { LOWEST_LOGPROB } from '@continuo/shared/logprob.ts';
import { type Envelope, usageObject } from '../generation/format/completion-json.ts';
import type { PlainFormat } from '../generation/plain-answer.ts';
import type { LabelCall, LabelStyle } from './label-call.ts';

/** Writes the probabilities of labels from the one token that is generated after each item. */
export class LabelFormat implements PlainFormat {
  readonly #call: LabelCall;
  readonly #envelope: Envelope;
  /** Of each item. */
  readonly #logprobs: (readonly TopLogprob[] | null | undefined)[] = [];

  constructor(call: LabelCall, envelope: Envelope) {
    this.#call = call;
    this.#envelope = envelope;
  }

  add(event: GenerationEvent): void {
    if (event.type === 'token') this.#logprobs[event.choice] ??= event.logprobs?.[0]?.topLogprobs;
  }

  end({ usage }: EventOf<'done'>): string {
    const { created, model, id } = this.#envelope;
    const scores = this.#call.call.generation.prompts.map((_, index) => this.#probabilities(index));
    const common = { created, model, usage: usageObject(usage) };
    const forms: Record<LabelStyle, () => object> = {
      vllm: () => ({
        id: id.replace(/^cmpl/, 'generative-scoring'),
        object: 'list',
        data: scores.map(([score], index) => ({ index, object: 'score', score })),
      }),
      sglang: () => ({ object: 'scoring', scores }),
    };
    return JSON.stringify({ ...forms[this.#call.style](), ...common });
  }

  #probabilities(index: number): readonly number[] {
    const logprobs = new Map(this.#logprobs[index]?.map(([id, , logprob]) => [id, logprob]));
    const labels = this.#call.labels.map((id) => logprobs.get(id) ?? throwUnscored(index));
    return this.#call.softmax ? softmax(labels) : labels.map(probabilityOf);
  }
}

const probabilityOf = (logprob: number): number => (logprob <= LOWEST_LOGPROB ? 0 : Math.exp(logprob));

/** Softmax over the listed values only; the largest is subtracted, so that one of them never underflows. */
function softmax(logprobs: readonly number[]): number[] {
  const highest = Math.max(...logprobs);
  const weights = logprobs.map((logprob) => Math.exp(logprob - highest));
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return weights.map((weight) => weight / sum);
}

function throwUnscored(index: number): never {
  throw new ApiError('upstream_error', `The model server returned no logprobs for 'items[${index}]'.`);
}
