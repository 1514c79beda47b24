import type { EventOf, GenerationEvent } from '@continuo/shared/generation.ts';
import type { ParsedCompletion } from '../../dialects/parsed-completion.ts';
import { ChoiceCollector } from './choice-collector.ts';
import { ChoiceDeltas } from './choice-deltas.ts';
import { completionJson, type Envelope } from './completion-json.ts';

/** Turns the events of one generation into a JSON body. */
export interface PlainFormat {
  add(event: GenerationEvent): void;
  /** Returns the body. @throws ApiError if the events are incomplete */
  end(done: EventOf<'done'>): string;
}

export const completionFormat = ({
  parsed: { response, generation },
  envelope,
}: {
  readonly parsed: ParsedCompletion;
  readonly envelope: Envelope;
}): PlainFormat => {
  const { prompts, choices } = generation;
  const deltas = new ChoiceDeltas(response, choices);
  const collector = new ChoiceCollector(response, prompts.length, choices);
  return {
    add: (event) => {
      for (const delta of deltas.of(event)) collector.add(delta);
    },
    end: (done) => {
      const trailer = { usage: done.usage, ...(response.timings ? { timings: done } : {}) };
      return completionJson(envelope, collector.chosen(), trailer);
    },
  };
};
