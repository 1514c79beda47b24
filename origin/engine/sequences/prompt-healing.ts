import { UnfinishedWork } from '@continuo/grammar/runtime/constraint.ts';
import { TokenHistory } from '../../sampling/token-history.ts';
import type { Healing } from '../text/healing.ts';
import type { SampledToken, SequenceSampling } from './sequence-sampling.ts';

/** Units of grammar work in one step to heal a prompt: 50 ms. */
const UNITS_PER_STEP = 5_000_000;
/** A check of a token whose parser steps are known takes about 1 µs. */
const UNITS_PER_CHECK = 100;

/** The end of a prompt after healing. */
interface HealedPrompt {
  /** The first token that differs from the prompt's. It takes the place of the rest. */
  readonly token: SampledToken;
  readonly history: TokenHistory;
}

/**
 * Chooses the last tokens of a prompt again. Returns null if they stay.
 * @param capacity tokens of prompt and completion together
 * @param forbidden returns the ids other than the prompt's own that may not come at a position
 * @throws UnfinishedWork if that has to go on in a later step
 */
export function healPrompt(
  healing: Healing,
  sampling: SequenceSampling,
  tokens: Int32Array,
  capacity: number,
  forbidden: (at: number) => readonly number[],
): HealedPrompt | null {
  const { allowsBytes, units } = sampling;
  let checks = 0;
  const allows = (bytes: Uint8Array): boolean => {
    checks += UNITS_PER_CHECK;
    if (sampling.units - units + checks > UNITS_PER_STEP) throw new UnfinishedWork();
    return allowsBytes!(bytes);
  };
  for (const step of healing.steps(sampling.tokenBytes, allowsBytes && allows)) {
    const { at, promptId } = step;
    const history = new TokenHistory(tokens.subarray(0, at), capacity);
    // Numbers below 0 are steps of their own, so these draws are independent of those of the text.
    const token = sampling.sampleHealed(step, history, at - tokens.length, forbidden(at));
    if (token !== null && token.id !== promptId) return { token, history };
  }
  return null;
}
