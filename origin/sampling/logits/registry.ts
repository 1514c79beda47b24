import { badWords } from './bad-words.ts';
import { dry } from './dry.ts';
import { frequencyPresence } from './frequency-presence.ts';
import { logitBias } from './logit-bias.ts';
import type { LogitProcessorFactory } from './processor.ts';
import { repetition } from './repetition.ts';

/**
 * Logit processors in the order in which they apply, after masks and before the temperature. Scores are rounded to
 * float32 after each.
 */
export const LOGIT_PROCESSORS: readonly LogitProcessorFactory[] = [
  badWords,
  logitBias,
  repetition,
  frequencyPresence,
  dry,
];
