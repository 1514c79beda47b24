import { expect, test } from 'vitest';
import type { ScoreLine } from '../../../../worker/site/score/score-lines.ts';
import { accuracyOf, bestOf, resultsCsv, resultsJsonl } from '../../../../worker/site/score/score-results.ts';
import { ScoreRun, type Timing } from '../../../../worker/site/score/score-run.ts';
import { CONNECTION, serveCompletions } from '../support/fake-completions.ts';

const lines = (count: number): readonly ScoreLine[] =>
  Array.from({ length: count }, (_, at) => ({
    number: at + 1,
    prompt: `${at}`,
    choices: [' yes', ' absolutely'],
    answer: 0,
  }));

/** By its length, the second choice wins per token and per byte. */
const scores = () =>
  Response.json({
    data: [
      { logprob: -2, token_count: 1, byte_count: 4 },
      { logprob: -3, token_count: 2, byte_count: 11 },
    ],
  });

const refusal = (status: number, code: string, headers: Record<string, string> = {}) =>
  Response.json({ error: { message: 'No.', type: 'x', param: null, code } }, { status, headers });

/** A clock that sleeping moves. */
function fakeTiming() {
  let now = 0;
  const slept: number[] = [];
  const timing: Timing = {
    now: () => now,
    sleep: async (ms) => {
      slept.push(ms);
      now += ms;
    },
  };
  return { timing, slept };
}

test('each line is one request, the best choice depends on the measure, and each has an accuracy', async () => {
  const sent = serveCompletions(scores);
  const run = new ScoreRun('default', lines(1_000), fakeTiming().timing);
  await run.start(CONNECTION);
  expect(sent).toHaveLength(1_000);
  expect(sent[7]!.body).toEqual({ model: 'default', prompt: '7', continuations: [' yes', ' absolutely'] });
  const results = run.results.peek();
  expect(run.state.peek().name).toBe('finished');
  const best = (['sum', 'token', 'byte'] as const).map((measure) => bestOf(results[0]!.scores!, measure));
  expect(best).toEqual([0, 1, 1]);
  expect(accuracyOf(results, 'sum')).toEqual({ right: 1_000, of: 1_000 });
  expect(accuracyOf(results, 'byte')).toEqual({ right: 0, of: 1_000 });
});

test('a rate limit is waited for as long as the server asks, and no line is lost', async () => {
  let refused = 0;
  serveCompletions(() => (refused++ < 3 ? refusal(429, 'requests', { 'retry-after': '7' }) : scores()));
  const { timing, slept } = fakeTiming();
  const run = new ScoreRun('default', lines(5), timing);
  await run.start(CONNECTION);
  expect(slept[0]).toBe(7_000);
  expect(run.results.peek().every(({ scores, fault }) => scores !== null && fault === null)).toBe(true);
});

test('a line that is refused fails alone, and is sent again by the next start', async () => {
  let isBroken = true;
  const sent = serveCompletions(({ body }) =>
    body.prompt === '1' && isBroken ? refusal(400, 'context_length_exceeded') : scores(),
  );
  const run = new ScoreRun('default', lines(3), fakeTiming().timing);
  await run.start(CONNECTION);
  expect(run.results.peek().map(({ fault }) => fault)).toEqual([null, 'No.', null]);
  isBroken = false;
  await run.start(CONNECTION);
  expect(sent.map(({ body }) => body.prompt)).toEqual(['0', '1', '2', '1']);
  expect(accuracyOf(run.results.peek(), 'sum').of).toBe(3);
});

test('a refused key ends the run, and a stopped run goes on where it was', async () => {
  let code: string | null = 'invalid_api_key';
  const sent = serveCompletions(() => (code === null ? scores() : refusal(401, code)));
  const run = new ScoreRun('default', lines(50), fakeTiming().timing);
  await run.start(CONNECTION);
  expect(run.state.peek()).toMatchObject({ name: 'failed', failure: { kind: 'key-refused' } });
  expect(sent.length).toBeLessThanOrEqual(4);
  code = null;
  const going = run.start(CONNECTION);
  run.stop();
  await going;
  expect(run.state.peek().name).toBe('stopped');
  await run.start(CONNECTION);
  expect(run.results.peek().every(({ scores }) => scores !== null)).toBe(true);
});

test('the files have a line for each prompt, and a row for each choice', async () => {
  serveCompletions(() => scores());
  const [line] = lines(1);
  const run = new ScoreRun('default', [{ ...line!, prompt: '=1\n2' }], fakeTiming().timing);
  await run.start(CONNECTION);
  const results = run.results.peek();
  expect(JSON.parse(resultsJsonl('default', results))).toMatchObject({
    ...{ line: 1, model: 'default', prompt: '=1\n2', answer: 0 },
    ...{ best: 0, best_per_token: 1, best_per_byte: 1 },
    scores: [{ logprob: -2, logprob_per_byte: -0.5 }, { logprob_per_token: -1.5 }],
  });
  const [, ...rows] = resultsCsv(results).split('\r\n');
  expect(rows).toEqual([
    `1,"'=1\n2",0, yes,-2,-2,-0.5,1,4,true,false,false,true,`,
    `1,"'=1\n2",1, absolutely,-3,-1.5,${-3 / 11},2,11,false,true,true,false,`,
    '',
  ]);
});
