import { expect, it } from 'vitest';
import type { Submission } from '../../../../origin/engine/messages.ts';
import { type LogitRows, type ModelRunner, RuntimeFault } from '../../../../origin/model/model-runner.ts';
import type { GenerationEvent } from '../../../../shared/generation.ts';
import { changedRunner } from '../../../tools/gpu/runners.ts';
import { Driver } from '../support/engine-driver.ts';
import { CHUNK, endless, longPrompt, shape } from '../support/long-requests.ts';
import { ScriptedRunner } from '../support/scripted-runner.ts';

const MAX_SCORED = 6;

/** A scripted device that scores: what it was asked to, and the rows that came to main memory. */
function scoringDevice(joinsPrompts = false, faults: Error[] = []) {
  const inner = new ScriptedRunner({
    ...shape(8),
    maxPromptLogits: 2,
    ...(joinsPrompts && { maxPrefillChunks: 2, joinsPrompts }),
  });
  const scored: { readonly prompts: number; readonly next: readonly number[] }[] = [];
  let brought = 0;
  const { vocabularySize } = inner.shape;
  const score: ModelRunner['score'] = async (chunks, next, signal) => {
    scored.push({ prompts: chunks.length, next: [...next] });
    const logits =
      chunks.length > 1
        ? await inner.prefillTogether(chunks, signal)
        : await inner.prefill(chunks[0]!, signal);
    const rowOf = (row: number) => logits.subarray(row * vocabularySize, (row + 1) * vocabularySize);
    const rows: LogitRows = {
      row: (row) => {
        const fault = faults.pop();
        if (fault) throw fault;
        brought++;
        return rowOf(row);
      },
      score: (row, top) => scoreOf(rowOf(row), next[row]!, top),
    };
    return rows;
  };
  const together = { prefillTogether: inner.prefillTogether.bind(inner) };
  const shaped = { ...inner.shape, maxScored: MAX_SCORED };
  const runner = changedRunner(inner, { shape: shaped, score, ...(joinsPrompts && together) });
  return { runner, inner, scored, brought: () => brought };
}

function scoreOf(logits: Float32Array, id: number, top: number) {
  const ids = Array.from(logits.keys()).sort((a, b) => logits[b]! - logits[a]! || a - b);
  const normalizer = Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit), 0));
  const logprobOf = (token: number) => Math.fround(logits[token]! - normalizer);
  const listed = ids.slice(0, top).map((token) => [token, logprobOf(token)] as const);
  return { logprob: logprobOf(id), rank: 1 + ids.indexOf(id), top: listed };
}

/** What each request gets, without times. */
async function eventsOf(runner: ModelRunner, submissions: readonly Submission[]) {
  const driver = new Driver(runner);
  for (const submission of submissions) driver.submit(submission);
  await driver.finish();
  return new Map(
    submissions.map(({ requestId }) => [requestId, driver.eventsOf(requestId).filter(isResult)]),
  );
}

const isResult = ({ type }: GenerationEvent) => type === 'prompt' || type === 'token';

const scoredPrompt = (requestId: string, length: number, first = 0): Submission => ({
  ...longPrompt(requestId, length),
  prompts: [{ tokens: Int32Array.from({ length }, (_, at) => (at + first) % 10), maxTokens: 4 }],
  promptTopLogprobs: 3,
  echo: true,
});

it('a device scores the tokens of a prompt, and brings the row that the first token is drawn from', async () => {
  const device = scoringDevice();
  const whole = new ScriptedRunner({ ...shape(8), maxPromptLogits: MAX_SCORED });
  const submissions = [scoredPrompt('scored', 2 * CHUNK + 3)];
  expect(await eventsOf(device.runner, submissions)).toEqual(await eventsOf(whole, submissions));
  expect(device.scored.map(({ next }) => next.length)).toEqual([6, 2, 6, 2, 3]);
  expect(device.scored.flatMap(({ next }) => next)).toEqual([
    ...Array.from({ length: 2 * CHUNK + 2 }, (_, at) => (at + 1) % 10),
    0,
  ]);
  expect(device.brought()).toBe(1);
});

it('short prompts are scored in one run, apart from those that are only continued', async () => {
  const device = scoringDevice(true);
  const submissions = [
    scoredPrompt('first', 3),
    endless('continued', 4),
    scoredPrompt('second', 3, 1),
    scoredPrompt('third', 3, 2),
  ];
  const whole = new ScriptedRunner({ ...shape(8), maxPromptLogits: MAX_SCORED });
  expect(await eventsOf(device.runner, submissions)).toEqual(await eventsOf(whole, submissions));
  // Two prompts of three tokens have as many rows as are scored at a time.
  expect(device.scored.map(({ prompts }) => prompts)).toEqual([2, 1]);
  expect(device.brought()).toBe(3);
});

it('whole rows come for a request that reports rows of logprobs', async () => {
  const device = scoringDevice();
  const logprobRows = { encoding: 'float32', prompt: true, maxCharacters: 10_000 } as const;
  const events = await eventsOf(device.runner, [{ ...scoredPrompt('rows', CHUNK), logprobRows }]);
  expect(events.get('rows')!.some(({ type }) => type === 'prompt')).toBe(true);
  expect(device.scored).toEqual([]);
});

it('a row that the device does not bring fails its request, and later requests are computed', async () => {
  const faults = [new RuntimeFault('CUDA failure 2', 'EP_FAIL', 'out-of-memory')];
  const driver = new Driver(scoringDevice(false, faults).runner);
  driver.submit(scoredPrompt('first', CHUNK));
  await driver.finish();
  driver.submit(scoredPrompt('second', CHUNK));
  await driver.finish();
  expect(driver.eventsOf('first').at(-1)).toMatchObject({ type: 'error', retryable: true });
  expect(driver.eventsOf('second').at(-1)).toMatchObject({ type: 'done' });
  expect(driver.reports.filter(({ type }) => type === 'fault')).toHaveLength(1);
});

it('of a joined run, all requests fail, and a lost device stops the engine', async () => {
  const faults = [new RuntimeFault('CUDA failure 700', 'EP_FAIL', 'device-lost')];
  const driver = new Driver(scoringDevice(true, faults).runner);
  const names = ['first', 'second'];
  for (const [first, name] of names.entries()) driver.submit(scoredPrompt(name, 3, first));
  await expect(driver.finish()).rejects.toMatchObject({ name: 'EngineFailure', cause: { code: 'EP_FAIL' } });
  for (const name of names)
    expect(driver.eventsOf(name).at(-1)).toMatchObject({ type: 'error', retryable: true });
});
