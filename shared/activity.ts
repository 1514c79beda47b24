import * as z from 'zod';
import { modelState } from './origin-model.ts';

/** What an origin does now and did in the last hour: GET /activity, and a part of the admin API. */

const minute = z.object({
  at: z.int().describe('Beginning of the minute in Unix seconds.'),
  tokens: z.int().describe('Generated tokens.'),
  delays: z
    .array(z.int())
    .describe(
      'Numbers of first tokens by their time since the arrival, for each of `bounds`; the last one is above all.',
    ),
});
export type ActivityMinute = z.infer<typeof minute>;

const modelActivity = z.object({
  id: z.string().describe('Id of the model.'),
  state: modelState.describe('State of the model.'),
  running: z.int().describe('Sequences that hold a slot.'),
  waiting: z.int().describe('Sequences in the queue.'),
  slots: z.int().describe('Slots; 0 while the model is not loaded.'),
  minutes: z.array(minute).describe('Minutes of the last hour with tokens, old ones first.'),
});
export type ModelActivity = z.infer<typeof modelActivity>;

export const originActivity = z.object({
  bounds: z.array(z.number()).describe('Upper bounds of `delays` in seconds.'),
  models: z.array(modelActivity).describe('The models of the origin.'),
});
export type OriginActivity = z.infer<typeof originActivity>;
