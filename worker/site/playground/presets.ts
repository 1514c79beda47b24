import type { Parameters } from '../api/request-field.ts';

/** Parameters and, for examples, a text to start from. */
export interface Preset {
  readonly name: string;
  readonly parameters: Parameters;
}

/** Small models repeat themselves: min_p cuts what they know badly, the penalty what they just said. */
const STORY: Parameters = {
  max_tokens: 120,
  temperature: 0.8,
  min_p: 0.05,
  repetition_penalty: 1.1,
  repeat_last_n: 64,
};

export const DEFAULT_PARAMETERS = STORY;

export const PRESETS: readonly Preset[] = [
  { name: 'Story', parameters: STORY },
  {
    name: 'Code',
    parameters: { ...STORY, max_tokens: 96, temperature: 0.7, min_p: 0.1, repetition_penalty: 1.05 },
  },
  { name: 'Most likely', parameters: { max_tokens: 64, temperature: 0 } },
  { name: "Model's own distribution", parameters: { max_tokens: 64, temperature: 1, top_p: 1 } },
];

interface Example {
  readonly title: string;
  readonly text: string;
  readonly preset: string;
}

/** Texts from what the built-in model was trained on. */
export const EXAMPLES: readonly Example[] = [
  {
    title: 'A fairy tale',
    text: 'Once upon a time there was a king who had three daughters.',
    preset: 'Story',
  },
  {
    title: 'A Python function',
    text: 'def is_prime(n):\n    """Return True if n is a prime number."""\n',
    preset: 'Code',
  },
  {
    title: 'A conversation in the forest',
    text: 'The wolf looked at the little girl and said, "Where are you going?"\n\n"I am going to',
    preset: 'Story',
  },
];

/** A prompt, and words after it with the logprobs that the built-in model gives them. */
export const SAMPLE = {
  prompt: 'Once upon a time',
  tokens: 'there was a little girl who ate the moon'.split(' '),
  logprobs: [-3.89, -0.42, -0.72, -3.2, -3.07, -1.58, -5.28, -2.73, -10.98],
};
