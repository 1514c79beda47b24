import type { WrittenForm } from '../../shared/generation.ts';

/** The form of a stream of which nothing special is wanted; tests change what they are about. */
export const writtenForm = ({ answer, ...changes }: ChangedForm = {}): WrittenForm => ({
  envelope: { id: `cmpl-${'0'.repeat(32)}`, created: 1_700_000_000, model: 'm', fingerprint: 'fp_00000000' },
  answer: {
    echo: false,
    echoLast: null,
    logprobs: null,
    tokensAsIds: false,
    tokenIds: false,
    promptLogprobs: null,
    timings: false,
    streamUsage: 'none',
    ...answer,
  },
  errorCode: 'string',
  keepAliveMs: 10_000,
  ...changes,
});

interface ChangedForm extends Partial<Omit<WrittenForm, 'answer'>> {
  readonly answer?: Partial<WrittenForm['answer']>;
}
