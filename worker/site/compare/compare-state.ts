import { type Signal, signal } from '@preact/signals';
import type { TokenizedText } from '../api/whole-choices.ts';
import type { Session } from '../store/session.ts';
import { tabSignal } from '../store/stored-signal.ts';
import { Side, type SideSettings, type Subject } from './comparison.ts';

export type Sides<T> = readonly [left: T, right: T];

/** What the view compares. Survives a reload. */
export interface CompareSettings extends Subject {
  readonly sides: Sides<SideSettings>;
}

/** Lives as long as the page, so that samples arrive while other views are shown. */
export interface CompareState {
  readonly session: Session;
  readonly settings: Signal<CompareSettings>;
  readonly sides: Sides<Side>;
  /** Index of the sample that is shown. */
  readonly sample: Signal<number>;
  /** The prompt of the shown samples. */
  readonly asked: Signal<TokenizedText>;
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
  opened ??= tabSignal<CompareSettings>('compare', { ...EXAMPLES[0]!.settings, prompt: '' }).then(
    (settings) => ({
      session,
      settings,
      sides: [new Side(), new Side()],
      sample: signal(0),
      asked: signal({ text: '', tokens: [] }),
    }),
  );
  return opened;
}

/** Requests the samples of both sides, or of one. */
export function compare({ session, settings, sides, sample, asked }: CompareState, only?: Side): void {
  const subject = settings.peek();
  if (subject.prompt === '') return;
  sample.value = 0;
  asked.value = { text: subject.prompt, tokens: [] };
  for (const [index, side] of sides.entries())
    if (only === undefined || only === side)
      void side.run(session.connection.peek(), subject.sides[index]!, subject);
}
