import fc from 'fast-check';
import type { SeededSampling, Submission, SubmittedPrompt } from '../../../../origin/engine/messages.ts';
import { type LogprobRows, MAX_TOP_LOGPROBS } from '../../../../shared/logprob.ts';
import { NEUTRAL_SAMPLING } from '../../../../shared/sampling.ts';
import { BOS, EOS, VOCABULARY } from './vocabulary.ts';

/** Neutral sampling with a seed. */
export const NEUTRAL: SeededSampling = { ...NEUTRAL_SAMPLING, seed: 1 };

/** Returns a submission with the given fields; the others are neutral. */
export function submission(fields: Partial<Submission> & { readonly requestId: string }): Submission {
  const tenantId = fields.tenantId ?? 'tenant';
  return {
    tenantId,
    weight: 1,
    flex: false,
    cacheNamespace: tenantId,
    cachePrompt: true,
    prompts: [{ tokens: Int32Array.of(BOS, 0, 1, 2), maxTokens: 8 }],
    choices: 1,
    minTokens: 0,
    stop: [],
    stopTokenIds: [],
    endTokenIds: [],
    includeStop: false,
    ignoreEos: false,
    sampling: NEUTRAL,
    constraint: null,
    topLogprobs: null,
    promptTopLogprobs: null,
    echo: false,
    scores: false,
    tokenIds: true,
    skipSpecialTokens: true,
    eventIntervalMs: 0,
    deadline: Number.MAX_SAFE_INTEGER,
    ...fields,
  };
}

const often = <T>(usual: T, other: fc.Arbitrary<T>): fc.Arbitrary<T> =>
  fc.oneof({ weight: 2, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: other });

const sampling: fc.Arbitrary<SeededSampling> = fc
  .record({
    temperature: fc.constantFrom(0, 0.7, 1, 1.5),
    topK: often(0, fc.integer({ min: 1, max: 10 })),
    topP: often(1, fc.double({ min: 0.3, max: 1, noNaN: true })),
    repetitionPenalty: often(1, fc.constantFrom(1.3)),
    frequencyPenalty: often(0, fc.constantFrom(0.8)),
    mirostat: often(0 as const, fc.constantFrom(1 as const, 2 as const)),
    seed: fc.nat(1000),
  })
  .map((fields) => ({ ...NEUTRAL, ...fields }));

/** Prompts that often share a prefix, for the prefix cache. */
const promptTokens = fc
  .tuple(fc.constantFrom(0, 5, 12, 23), fc.array(fc.integer({ min: 0, max: 2 }), { maxLength: 12 }))
  .map(([shared, rest]) =>
    Int32Array.from([BOS, ...Array.from({ length: shared }, (_, at) => (at * 7) % 10), ...rest]),
  );

/** A prompt that is scored and reported from any of its tokens on, if the submission asks for it. */
const prompt = (maxTokens: number): fc.Arbitrary<SubmittedPrompt> =>
  fc
    .record({
      tokens: promptTokens,
      maxTokens: fc.integer({ min: 0, max: maxTokens }),
      logprobsFrom: often(0, fc.nat(40)),
      echoFrom: often(0, fc.nat(40)),
      healed: often(0, fc.integer({ min: 1, max: 9 })),
    })
    .map(({ logprobsFrom, echoFrom, healed, ...fields }) => ({
      ...fields,
      ...(healed > 0 && fields.tokens.length > 1 && { healFrom: Math.max(1, fields.tokens.length - healed) }),
      logprobsFrom: Math.min(logprobsFrom, fields.tokens.length - 1),
      echoFrom: Math.min(echoFrom, fields.tokens.length - 1),
    }));

const bannedText = fc.constantFrom('ab', 'bca', 'c', '😀', 'é', ' a', 'aab', 'b\n');
const bannedPattern = fc
  .constantFrom('a[bc]a', 'b+c', 'é|😀', 'c.a', 'a ?b', '(?:ab|c)+[^a]')
  .map((regex) => ({ regex }));

/**
 * Submissions of every kind that fit the context.
 * @param maxTokens tokens to generate per choice, at most
 */
export const anySubmission = (maxTokens: number): fc.Arbitrary<Omit<Submission, 'requestId'>> =>
  fc
    .record({
      tenantId: fc.constantFrom('a', 'b', 'c'),
      weight: often(1, fc.constantFrom(0.3, 4)),
      flex: fc.boolean(),
      cachePrompt: often(true, fc.constant(false)),
      prompts: fc.array(prompt(maxTokens), { minLength: 1, maxLength: 3 }),
      choices: often(1, fc.integer({ min: 2, max: 6 })),
      minTokens: often(0, fc.integer({ min: 1, max: 6 })),
      stop: often<string[]>(
        [],
        fc.array(fc.constantFrom('ab', 'abc', 'b', 'cab', '😀', ' a', 'é'), { maxLength: 3 }),
      ),
      bannedPhrases: often<Submission['bannedPhrases'] | null>(
        null,
        fc.array(fc.oneof({ weight: 3, arbitrary: bannedText }, { weight: 1, arbitrary: bannedPattern }), {
          minLength: 1,
          maxLength: 3,
        }),
      ),
      stopTokenIds: often<number[]>([], fc.constantFrom([EOS], [3], [VOCABULARY - 1, 7])),
      endTokenIds: often<readonly number[]>([], fc.constantFrom([4], [5, 7])),
      includeStop: fc.boolean(),
      ignoreEos: fc.boolean(),
      sampling,
      topLogprobs: often<number | null>(null, fc.integer({ min: 0, max: 4 })),
      promptTopLogprobs: often<number | null>(null, fc.integer({ min: 0, max: MAX_TOP_LOGPROBS })),
      logprobTokenIds: often<number[] | null>(
        null,
        fc.uniqueArray(fc.nat(VOCABULARY - 1), { minLength: 1, maxLength: 30 }),
      ),
      logprobRows: often<LogprobRows | null>(
        null,
        fc.record({
          encoding: fc.constantFrom('float32', 'float16'),
          topP: fc.constantFrom(undefined, 0.5, 0.95),
          prompt: fc.boolean(),
          maxCharacters: fc.constant(2 ** 30),
        }),
      ),
      echo: fc.boolean(),
      scores: fc.boolean(),
      tokenIds: fc.boolean(),
      skipSpecialTokens: fc.boolean(),
      eventIntervalMs: fc.constantFrom(0, 10, 250),
      tokensPerEvent: often<number | undefined>(undefined, fc.constantFrom(1, 2)),
    })
    .map(({ logprobTokenIds, logprobRows, bannedPhrases, ...fields }) =>
      submission({
        requestId: '',
        ...fields,
        ...(bannedPhrases && { bannedPhrases }),
        ...(logprobTokenIds && { logprobTokenIds }),
        ...(logprobRows && { logprobRows }),
        cacheNamespace: fields.tenantId,
      }),
    );
