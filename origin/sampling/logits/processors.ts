import type { TokenHistory } from '../token-history.ts';
import { dry } from './dry.ts';
import type { LogitProcessorFactory } from './processor.ts';

/** Forbids the last token of a bad word if the history ends with the tokens before it (vLLM's bad_words). */
const badWords: LogitProcessorFactory = ({ badTokens: words = [] }) => {
  if (words.length === 0) return null;
  return {
    apply(logits, history) {
      for (const tokens of words) {
        if (endsWithAllButLast(history, tokens)) logits.forbid(tokens.at(-1)!);
      }
    },
  };
};

function endsWithAllButLast(history: TokenHistory, tokens: readonly number[]): boolean {
  const start = history.length - (tokens.length - 1);
  if (start < 0) return false;
  for (let i = 0; i < tokens.length - 1; i++) if (history.tokens[start + i] !== tokens[i]) return false;
  return true;
}

/** OpenAI's logit_bias: z ← z + b; null forbids the token. Several biases of one token add up. */
const logitBias: LogitProcessorFactory = ({ logitBias }) => {
  if (logitBias.length === 0) return null;
  const sums = new Map<number, number>();
  for (const [id, bias] of logitBias) sums.set(id, (sums.get(id) ?? 0) + (bias ?? Number.NEGATIVE_INFINITY));
  return {
    apply(logits) {
      for (const [id, sum] of sums) {
        if (sum === Number.NEGATIVE_INFINITY) logits.forbid(id);
        else logits.add(id, sum);
      }
    },
  };
};

/**
 * Repetition penalty (Keskar et al., "CTRL", 2019, as corrected for negative logits): every token of the
 * prompt or the generated text within the window, once: z ← z / r if z > 0, else z · r.
 */
const repetition: LogitProcessorFactory = ({ repetitionPenalty, repeatLastN }) => {
  if (repetitionPenalty === 1 || repeatLastN === 0) return null;
  return {
    apply(logits, history) {
      const { distinct, ids } = history.countsOver(repeatLastN);
      for (let entry = 0; entry < distinct; entry++) logits.repeat(ids[entry]!, repetitionPenalty);
    },
  };
};

/**
 * OpenAI's penalties: z ← z − c · frequency_penalty − [c > 0] · presence_penalty. c counts the token's
 * occurrences within the window: among generated tokens, or in prompt and generated text together if the
 * scope is 'all' (llama.cpp).
 */
const frequencyPresence: LogitProcessorFactory = (parameters) => {
  const { frequencyPenalty, presencePenalty, repeatLastN, penaltyScope } = parameters;
  if ((frequencyPenalty === 0 && presencePenalty === 0) || repeatLastN === 0) return null;
  return {
    apply(logits, history) {
      const counts = history.countsOver(repeatLastN);
      const { distinct, ids } = counts;
      const occurrences = penaltyScope === 'all' ? counts.total : counts.generated;
      for (let entry = 0; entry < distinct; entry++) {
        const [id, count] = [ids[entry]!, occurrences[entry]!];
        if (count > 0) logits.subtract(id, count * frequencyPenalty + presencePenalty);
      }
    },
  };
};

/**
 * Logits processors in the order in which they apply, after masks and before the temperature. Logits are
 * rounded to float32 after each.
 */
export const LOGIT_PROCESSORS: readonly LogitProcessorFactory[] = [
  badWords,
  logitBias,
  repetition,
  frequencyPresence,
  dry,
];
