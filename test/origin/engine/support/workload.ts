import fc from 'fast-check';
import { expect } from 'vitest';
import type { Submission } from '../../../../origin/engine/messages.ts';
import type { Driver } from './engine-driver.ts';
import { plainTranscript } from './reference-generation.ts';
import { anySubmission } from './submissions.ts';
import { ordered, type Transcript, transcribe } from './transcript.ts';
import { VOCABULARY } from './vocabulary.ts';

const MAX_TOKENS = 20;

/** A context that fits every arrival. A lone sequence decodes beside an idle row. */
export const shape = (slots: number) => ({
  slots,
  contextLength: 64,
  prefillChunk: 8,
  maxPrefillChunks: 2,
  vocabularySize: VOCABULARY,
  minRows: Math.min(2, slots),
  maxCopied: 5,
});

export interface Arrival {
  readonly submission: Submission;
  readonly at: number;
  /** Steps from its arrival to its abort; null = never. */
  readonly abortAfter: number | null;
}

/** Requests of every kind at random times, some of them aborted. */
export const arrivals: fc.Arbitrary<Arrival[]> = fc
  .array(
    fc.record({
      submission: anySubmission(MAX_TOKENS),
      at: fc.nat(60),
      abortAfter: fc.oneof({ weight: 4, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fc.nat(30) }),
      /** Has the prompts of the first arrival. */
      repeats: fc.boolean(),
    }),
    { minLength: 1, maxLength: 24, size: 'max' },
  )
  .map((list): Arrival[] =>
    list.map(({ submission, repeats, ...arrival }, index) => {
      const { prompts, tenantId, cacheNamespace } = (repeats && list[0]?.submission) || submission;
      const repeated = { ...submission, prompts, tenantId, cacheNamespace };
      return { ...arrival, submission: { ...repeated, requestId: `request ${index}` } };
    }),
  );

export async function play(driver: Driver, workload: readonly Arrival[]): Promise<void> {
  for (let step = 0; step <= 100; step++) {
    for (const { submission, at } of workload) if (at === step) driver.submit(submission);
    for (const { submission, at, abortAfter } of workload) {
      if (abortAfter !== null && at + abortAfter === step) driver.engine.abort(submission.requestId);
    }
    await driver.step();
  }
  await driver.finish();
}

/**
 * Compares what a request has got with the plain reference; an aborted one may have got the beginning.
 * Returns whether it ended.
 */
export function expectReference(
  driver: Driver,
  { submission, abortAfter }: Arrival,
  reference: Parameters<typeof plainTranscript>[1],
): boolean {
  const transcript = transcribe(driver.eventsOf(submission.requestId), submission.choices);
  const whole = plainTranscript(submission, reference);
  if (abortAfter !== null && transcript.end === null) {
    expectBeginning(transcript, whole);
    return false;
  }
  expect(ordered(transcript)).toEqual(ordered(whole));
  return true;
}

/** Checks that an aborted request has sent a prefix of its whole output. */
function expectBeginning(transcript: Transcript, whole: Transcript): void {
  for (const [index, { text, ids, finish }] of transcript.choices) {
    const expected = whole.choices.get(index);
    expect(expected?.text.startsWith(text)).toBe(true);
    expect(expected?.ids.slice(0, ids.length)).toEqual(ids);
    if (finish !== null) expect(finish).toEqual(expected?.finish);
  }
}
