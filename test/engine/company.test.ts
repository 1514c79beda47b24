import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Submission } from '../../origin/engine/messages.ts';
import { VOCABULARY } from './support/alphabet.ts';
import { Driver } from './support/driver.ts';
import { plainChoice, plainPrompt } from './support/plain-generation.ts';
import { ScriptedRunner } from './support/scripted-runner.ts';
import { anySubmission } from './support/submissions.ts';
import { ordered, type Transcript, transcribe } from './support/transcript.ts';

const CONTEXT = 64;
const CHUNK = 8;
const MOST_TOKENS = 20;

const shape = (slots: number) => ({
  slots,
  contextLength: CONTEXT,
  prefillChunk: CHUNK,
  vocabularySize: VOCABULARY,
});

function plainTranscript(submission: Submission): Transcript {
  const transcript: Transcript = { prompts: new Map(), choices: new Map(), end: null };
  let completionTokens = 0;
  submission.prompts.forEach((_, promptIndex) => {
    for (let candidate = 0; candidate < submission.choices; candidate++) {
      const choice = plainChoice(submission, promptIndex, candidate, shape(1));
      completionTokens += choice.completionTokens;
      transcript.choices.set(promptIndex * submission.choices + candidate, choice);
    }
    if (submission.echo || submission.promptLogprobs !== null) {
      transcript.prompts.set(promptIndex, plainPrompt(submission, promptIndex, CHUNK) as never);
    }
  });
  const promptTokens = submission.prompts.reduce((total, { tokens }) => total + tokens.length, 0);
  transcript.end = { promptTokens, completionTokens };
  return transcript;
}

interface Arrival {
  readonly submission: Submission;
  readonly at: number;
  /** Steps after its arrival at which it is given up; null = never. */
  readonly abortAfter: number | null;
}

const arrivals = fc
  .array(
    fc.record({
      submission: anySubmission(MOST_TOKENS),
      at: fc.nat(60),
      abortAfter: fc.oneof({ weight: 4, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fc.nat(30) }),
    }),
    { minLength: 1, maxLength: 24, size: 'max' },
  )
  .map((list): Arrival[] =>
    list.map((arrival, index) => ({
      ...arrival,
      submission: { ...arrival.submission, requestId: `request ${index}` },
    })),
  );

async function play(driver: Driver, workload: readonly Arrival[]): Promise<void> {
  for (let step = 0; step <= 100; step++) {
    for (const { submission, at } of workload) if (at === step) driver.submit(submission);
    for (const { submission, at, abortAfter } of workload) {
      if (abortAfter !== null && at + abortAfter === step) driver.engine.abort(submission.requestId);
    }
    await driver.step();
  }
  await driver.finish();
}

/** What was sent before an abort is the beginning of what would have been sent. */
function expectBeginning(transcript: Transcript, submission: Submission): void {
  const whole = plainTranscript(submission);
  for (const [index, { text, ids, finish }] of transcript.choices) {
    const expected = whole.choices.get(index);
    expect(expected?.text.startsWith(text)).toBe(true);
    expect(expected?.ids.slice(0, ids.length)).toEqual(ids);
    if (finish !== null) expect(finish).toEqual(expected?.finish);
  }
}

describe('a request among any others', () => {
  it('is answered as by the plain reference: same tokens, text, logprobs, finish', async () => {
    let requests = 0;
    await fc.assert(
      fc.asyncProperty(
        arrivals,
        fc.integer({ min: 1, max: 9 }),
        fc.boolean(),
        async (workload, slots, slow) => {
          const runner = new ScriptedRunner(shape(slots), slow ? { prefillTurns: 1, asyncDecode: true } : {});
          const driver = new Driver(runner);
          await play(driver, workload);
          for (const { submission, abortAfter } of workload) {
            const transcript = transcribe(driver.eventsOf(submission.requestId), submission.choices);
            if (abortAfter !== null && transcript.end === null) {
              expectBeginning(transcript, submission);
              continue;
            }
            requests++;
            expect(ordered(transcript)).toEqual(ordered(plainTranscript(submission)));
          }
        },
      ),
      { numRuns: 120 },
    );
    expect(requests).toBeGreaterThan(1000);
  });
});
