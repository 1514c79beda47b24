import type { GenerationEvent } from '../../../shared/generation.ts';

/** The events of a generation of one token. */
export const USAGE = { promptTokens: 1, cachedTokens: 0, completionTokens: 1 };
export const ACCEPTED: GenerationEvent = { type: 'accepted', model: 'm', promptTokens: [1] };
export const TOKEN: GenerationEvent = { type: 'token', choice: 0, text: 'a', completionTokens: 1 };
export const DONE: GenerationEvent = {
  type: 'done',
  usage: USAGE,
  timings: { queueMs: 0, promptMs: 0, generationMs: 0 },
};
