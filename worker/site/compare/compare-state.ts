import { type Signal, signal } from '@preact/signals';
import type { TokenizedText } from '../api/whole-choices.ts';
import { focusFault } from '../controls/focus-fault.ts';
import type { Session } from '../store/session.ts';
import { tabSignal } from '../store/stored-signal.ts';
import { Side, type SideSettings, type Subject } from './comparison.ts';

export type Sides<T> = readonly [left: T, right: T];

/** What the view compares. Survives a reload. */
export interface CompareSettings extends Subject {
  readonly sides: Sides<SideSettings>;
  /** A prompt for each side; absent = both have the same. */
  readonly prompts?: Sides<string> | null;
}

/** What is compared: samples of two requests, one given text, or choices of many lines. */
export const MODES = [
  ['samples', 'Samples'],
  ['text', 'Given text'],
  ['choices', 'Choices'],
] as const;
export type CompareMode = (typeof MODES)[number][0];

/** Lives as long as the page, so that samples arrive while other views are shown. */
export interface CompareState {
  readonly session: Session;
  readonly settings: Signal<CompareSettings>;
  readonly sides: Sides<Side>;
  /** Index of the sample that is shown. */
  readonly sample: Signal<number>;
  /** The prompts of the shown samples. */
  readonly asked: Signal<Sides<TokenizedText>>;
  readonly mode: Signal<CompareMode>;
  /** The given text under both models. */
  readonly scored: Sides<Side>;
  readonly scoredText: Signal<string>;
}

const PROMPT = 'Once upon a time there was a king who had three daughters.';

export interface Example {
  readonly title: string;
  readonly about: string;
  readonly settings: CompareSettings;
}

const side = (parameters: Record<string, unknown>, dialect: string | null = null): SideSettings => ({
  model: 'default',
  dialect,
  parameters,
});

export const EXAMPLES: readonly Example[] = [
  {
    title: 'Cold and warm',
    about: 'temperature 0.3 against 1',
    settings: {
      prompt: PROMPT,
      n: 16,
      sides: [side({ max_tokens: 48, temperature: 0.3 }), side({ max_tokens: 48, temperature: 1 })],
    },
  },
  {
    title: 'With and without a penalty',
    about: 'repetition_penalty 1.2 on the most likely text',
    settings: {
      prompt: PROMPT,
      n: 1,
      sides: [
        side({ max_tokens: 64, temperature: 0 }),
        side({ max_tokens: 64, temperature: 0, repetition_penalty: 1.2 }),
      ],
    },
  },
  {
    title: 'Two dialects',
    about: 'the defaults of openai and llamacpp',
    settings: {
      prompt: 'def is_prime(n):\n    """Return True if n is a prime number."""\n',
      n: 8,
      sides: [side({ max_tokens: 48 }, 'openai'), side({ max_tokens: 48 }, 'llamacpp')],
    },
  },
];

let opened: Promise<CompareState> | null = null;

/** Reads the stored settings; later calls return the same state. */
export function openComparison(session: Session): Promise<CompareState> {
  opened ??= Promise.all([
    tabSignal<CompareSettings>('compare', { ...EXAMPLES[0]!.settings, prompt: '' }),
    tabSignal<CompareMode>('compare-mode', 'samples'),
  ]).then(([settings, mode]) => ({
    session,
    settings,
    mode,
    sides: [new Side(), new Side()],
    sample: signal(0),
    asked: signal([typed(''), typed('')]),
    scored: [new Side(), new Side()],
    scoredText: signal(''),
  }));
  return opened;
}

const typed = (text: string): TokenizedText => ({ text, tokens: [] });

/** Returns the prompt of each side. */
export const promptsOf = ({ prompt, prompts }: CompareSettings): Sides<string> => prompts ?? [prompt, prompt];

/** Returns the settings with another model of one side. */
export function withModel(settings: CompareSettings, index: number, model: string): CompareSettings {
  const [left, right] = settings.sides.map((side, at) => (at === index ? { ...side, model } : side));
  return { ...settings, sides: [left!, right!] };
}

/** Requests the samples of both sides, or of one. */
export function compare({ session, settings, sides, sample, asked }: CompareState, only?: Side): void {
  const subject = settings.peek();
  const prompts = promptsOf(subject);
  if (prompts.includes('') || focusFault()) return;
  sample.value = 0;
  asked.value = [typed(prompts[0]), typed(prompts[1])];
  for (const [index, side] of sides.entries())
    if (only === undefined || only === side)
      void side.run(session.connection.peek(), subject.sides[index]!, {
        prompt: prompts[index]!,
        n: subject.n,
      });
}

/** Requests the logprobs of a given text from both models. Generates nothing. */
export function scoreText({ session, settings, scored, scoredText }: CompareState): void {
  const { prompt, sides } = settings.peek();
  if (prompt === '') return;
  scoredText.value = prompt;
  const parameters = { max_tokens: 0, echo: true };
  for (const [index, side] of scored.entries())
    void side.run(session.connection.peek(), { ...sides[index]!, parameters }, { prompt, n: 1 });
}
