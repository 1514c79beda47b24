import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { CompiledGrammar } from '../../../origin/grammar/runtime/constraint.ts';
import { runs } from '../../support/random.ts';
import { Driver } from './support/engine-driver.ts';
import { CHUNK, endless, longPrompt, shape, tokensSoFar } from './support/long-requests.ts';
import { TOKENS_ONLY } from './support/positional-grammar.ts';
import { plainTranscript } from './support/reference-generation.ts';
import { ScriptedRunner } from './support/scripted-runner.ts';
import { anySubmission, NEUTRAL } from './support/submissions.ts';
import { ordered, transcribe } from './support/transcript.ts';
import { BOS, EOS, VOCABULARY } from './support/vocabulary.ts';

const doneBy = (driver: Driver, tenant: string) =>
  [...driver.events].filter(([id, events]) => id.startsWith(tenant) && events.at(-1)?.type === 'done').length;

describe('fairness between tenants', () => {
  it('gives equal shares to two tenants, if one sends ten times as many requests', async () => {
    const driver = new Driver(new ScriptedRunner(shape(4)));
    for (let serial = 0; serial < 200; serial++) driver.submit(endless(`loud ${serial}`, 10, 'loud'));
    for (let serial = 0; serial < 20; serial++) driver.submit(endless(`quiet ${serial}`, 10, 'quiet'));
    const done = (tenant: string) => doneBy(driver, tenant);
    while (done('quiet') < 20) await driver.step();
    expect(done('loud')).toBeLessThanOrEqual(24);
    await driver.finish();
    expect(done('loud')).toBe(200);
  });

  it('copies the KV of 32 chunks per step for the choices of a prompt, and changes no token', async () => {
    const runner = new ScriptedRunner(shape(8));
    let copied = 0;
    const copy = runner.copy.bind(runner);
    runner.copy = (from, to, length) => {
      copied += length;
      copy(from, to, length);
    };
    const driver = new Driver(runner);
    // Its last chunk is not whole, so the prefix cache keeps less than the prompt.
    const length = 15 * CHUNK - 3;
    const one = longPrompt('long', length, 'a');
    const long = { ...one, choices: 7, prompts: one.prompts.map((prompt) => ({ ...prompt, maxTokens: 20 })) };
    driver.submit(endless('stream', 100, 'b'));
    driver.submit(long);
    const copiedBy: number[] = [];
    while (transcribe(driver.eventsOf('long'), 7).end === null) {
      copied = 0;
      await driver.step();
      copiedBy.push(copied);
    }
    // The last choice takes the prompt's own slot. What follows are moves of finished choices.
    expect(copiedBy.filter((length) => length > 0).slice(0, 3)).toEqual(Array(3).fill(2 * length));
    expect(ordered(transcribe(driver.eventsOf('long'), 7))).toEqual(
      ordered(plainTranscript(long, runner.shape)),
    );
    await driver.finish();
  });

  it('samples the first tokens of the choices of a prompt from two million logits per step', async () => {
    const driver = new Driver(new ScriptedRunner({ ...shape(8), vocabularySize: 2 ** 19 }));
    driver.submit({ ...endless('many', 2), choices: 8 });
    const begun = () => transcribe(driver.eventsOf('many'), 8).choices.size;
    await driver.step();
    expect(begun()).toBe(4);
    await driver.step();
    expect(begun()).toBe(8);
  });

  it('alternates prefill chunks between tenants, so that a long prompt does not block the others', async () => {
    const driver = new Driver(new ScriptedRunner(shape(4)));
    driver.submit(longPrompt('long', 50 * CHUNK, 'a'));
    await driver.step();
    driver.submit(longPrompt('short', 2 * CHUNK, 'b'));
    let steps = 0;
    for (; tokensSoFar(driver, 'short') === 0; steps++) await driver.step();
    expect(steps).toBeLessThanOrEqual(4);
  });

  it('charges a tenant for its submissions, also if it aborts them', async () => {
    let slow = false;
    const runner = new ScriptedRunner(shape(4), { beforeRun: () => void (driver.now += 1) });
    const driver: Driver = new Driver(runner, { now: () => (driver.now += slow ? 0.5 : 0) });
    for (const tenant of ['quiet', 'flood']) driver.submit(endless(tenant, 1000, tenant));
    for (let step = 0; step < 100; step++) {
      slow = true;
      driver.submit(endless('again', 1, 'flood'));
      slow = false;
      driver.engine.abort('again');
      await driver.engine.step();
    }
    expect(tokensSoFar(driver, 'quiet')).toBeGreaterThan(1.5 * tokensSoFar(driver, 'flood'));
  });

  it('shares tokens, not requests', async () => {
    const driver = new Driver(new ScriptedRunner(shape(1)));
    for (let serial = 0; serial < 20; serial++) {
      driver.submit(endless(`long ${serial}`, 98, 'long'));
      driver.submit(endless(`short ${serial}`, 8, 'short'));
    }
    while (doneBy(driver, 'short') < 20) await driver.step();
    expect(doneBy(driver, 'long')).toBeLessThanOrEqual(3);
  });

  const sampling = { ...NEUTRAL, logitBias: [[EOS, 100] satisfies [number, number]] };
  const prompts = [{ tokens: Int32Array.from({ length: 200 }, (_, at) => at % 10), maxTokens: 3000 }];
  it.each([
    ['ends with its first token', { sampling, ignoreEos: false }, null],
    ['ends with its fourth token', { sampling, ignoreEos: false, minTokens: 3 }, null],
    ['is aborted while it streams', {}, 5],
    ['is aborted in prefill', { prompts }, 5],
  ])('charges only what a request has used, if it %s', async (_, fields, abortAfter) => {
    const driver = new Driver(new ScriptedRunner(shape(1)));
    // Keeps the slot busy, because a request that enters an empty queue is not charged.
    driver.submit(endless('before', 1, 'c'));
    driver.submit({ ...endless('first', 3000, 'a'), ...fields });
    for (let serial = 0; serial < 10; serial++) driver.submit(endless(`a ${serial}`, 10, 'a'));
    for (let serial = 0; serial < 10; serial++) driver.submit(endless(`b ${serial}`, 10, 'b'));
    for (let step = 0; step < (abortAfter ?? 0); step++) await driver.step();
    if (abortAfter !== null) driver.engine.abort('first');
    while (doneBy(driver, 'b') < 5) await driver.step();
    expect(doneBy(driver, 'a')).toBeGreaterThanOrEqual(3);
  });
});

describe('grammar work', () => {
  /** About 5 ms, the most that one operation of a grammar may take. */
  const UNITS = 500_000;
  /** About 2 ms. */
  const PER_STEP = 200_000;

  /** Allows every token; each mask costs `UNITS` and is counted. */
  const hostile = (count: () => void): CompiledGrammar => ({
    start: (onWork) => ({
      ...TOKENS_ONLY,
      accepting: false,
      mask: () => {
        count();
        onWork?.(UNITS);
        return new Uint32Array((VOCABULARY + 31) >>> 5).fill(2 ** 32 - 1);
      },
      accept: () => undefined,
    }),
  });

  const start = () => {
    let masks = 0;
    let woken = 0;
    const driver = new Driver(new ScriptedRunner(shape(8)), {
      compile: () => hostile(() => masks++),
      onWork: () => woken++,
    });
    /** Makes one step; returns the masks computed in it. */
    const step = async () => {
      masks = 0;
      await driver.step();
      await new Promise((resolve) => setImmediate(resolve));
      return masks;
    };
    return { driver, step, woken: () => woken };
  };

  it('of a tenant is limited per step, however many sequences and requests it has', async () => {
    const { driver, step } = start();
    driver.submit(endless('plain', 200, 'other'));
    for (let serial = 0; serial < 4; serial++) {
      driver.submit({ ...endless(`hostile ${serial}`, 30, 'hostile'), constraint: '{}' });
    }
    let work = 0;
    for (let steps = 1; steps <= 150; steps++) {
      const before = tokensSoFar(driver, 'plain');
      const masks = await step();
      // One operation more than the tenant has left, and the first token of a prompt.
      expect(masks).toBeLessThanOrEqual(2);
      work += masks * UNITS;
      expect(work).toBeLessThanOrEqual(steps * PER_STEP + 8 * UNITS);
      if (steps > 1) expect(tokensSoFar(driver, 'plain')).toBe(before + 1);
    }
    const served = [0, 1, 2, 3].map((serial) => tokensSoFar(driver, `hostile ${serial}`));
    expect(Math.min(...served)).toBeGreaterThan(8);
    expect(Math.max(...served) - Math.min(...served)).toBeLessThanOrEqual(4);
  });

  it('that waits changes no token', async () => {
    const { driver, step } = start();
    for (const id of ['first', 'second']) {
      driver.submit({ ...endless(id, 30, 'hostile'), constraint: '{}' });
    }
    while (!driver.engine.idle || driver.engine.awaitsPreparation) await step();
    const plain = new Driver(new ScriptedRunner(shape(8)));
    plain.submit(endless('first', 30, 'hostile'));
    await plain.finish();
    const ids = (of: Driver, id: string) => transcribe(of.eventsOf(id), 1).choices.get(0)?.ids;
    expect(ids(driver, 'first')).toEqual(ids(plain, 'first'));
    expect(ids(driver, 'second')).toEqual(ids(plain, 'first'));
  });

  it('to heal a prompt is limited per step and goes on in later ones, however much it is', async () => {
    let checks = 0;
    const withCost = (units: number): CompiledGrammar => ({
      start: (onWork) => ({
        ...TOKENS_ONLY,
        accepting: false,
        mask: () => new Uint32Array((VOCABULARY + 31) >>> 5).fill(2 ** 32 - 1),
        accept: () => undefined,
        allowsBytes: () => {
          checks++;
          onWork?.(units);
          return true;
        },
      }),
    });
    const heal = async (units: number) => {
      const driver = new Driver(new ScriptedRunner(shape(8)), { compile: () => withCost(units) });
      // The tokens of both positions cover 12 others.
      const prompts = [{ tokens: Int32Array.of(BOS, 2, 0), maxTokens: 5, healFrom: 1 }];
      driver.submit({ ...endless('healed', 5), prompts, constraint: '{}' });
      let mostPerStep = 0;
      const before = checks;
      while (doneBy(driver, 'healed') === 0) {
        const sofar = checks;
        await driver.step();
        await new Promise((resolve) => setImmediate(resolve));
        mostPerStep = Math.max(mostPerStep, checks - sofar);
      }
      const { end, choices } = transcribe(driver.eventsOf('healed'), 1);
      return { end, ids: choices.get(0)?.ids, checks: checks - before, mostPerStep };
    };
    const cheap = await heal(0);
    const costly = await heal(3_000_000);
    expect(cheap.checks).toBeGreaterThan(5);
    expect(cheap.mostPerStep).toBe(cheap.checks);
    expect(costly).toEqual({ ...cheap, mostPerStep: 2 });
  });

  const banning = anySubmission(8).filter(({ bannedPhrases }) => bannedPhrases !== undefined);

  it('that is spent leaves tokens that were taken back to later steps, and changes no token', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(banning, { minLength: 1, maxLength: 4 }), async (submissions) => {
        const { driver, step } = start();
        for (const tenant of ['a', 'b', 'c']) {
          driver.submit({ ...endless(`hostile ${tenant}`, 3000, tenant), constraint: '{}' });
        }
        const named = submissions.map((fields, serial) => ({ ...fields, requestId: `banned ${serial}` }));
        for (const one of named) driver.submit(one);
        const transcriptOf = ({ requestId, choices }: (typeof named)[number]) =>
          transcribe(driver.eventsOf(requestId), choices);
        while (named.some((one) => transcriptOf(one).end === null)) await step();
        for (const one of named) {
          expect(ordered(transcriptOf(one))).toEqual(ordered(plainTranscript(one, shape(8))));
        }
      }),
      { numRuns: runs(60) },
    );
  });

  it('has room for two tokens of a vocabulary of 100,000 that were taken back, beside one of each sequence', async () => {
    const driver = new Driver(new ScriptedRunner({ ...shape(4), vocabularySize: PER_STEP / 2 }));
    const sampling = { ...NEUTRAL, allowedTokenIds: [0, 1, 2, 3, 4, 5, 6, 7, 8, 10] };
    const bannedPhrases = ['a', 'b', 'c', ' ', 'é'];
    driver.submit({ ...endless('banned', 40), choices: 4, sampling, bannedPhrases });
    const sampled = () => {
      const { choices } = transcribe(driver.eventsOf('banned'), 4);
      return [...choices.values()].reduce((sum, { completionTokens }) => sum + completionTokens, 0);
    };
    // The first step computes the prompt and the rows after it.
    for (let most = 4 + 2 + 4; doneBy(driver, 'banned') === 0; most = 4 + 2) {
      const before = sampled();
      await driver.step();
      expect(sampled() - before).toBeLessThanOrEqual(most);
    }
    expect(sampled()).toBe(4 * 40);
  });

  it('that waits for a step wakes an idle engine', async () => {
    const { driver, step, woken } = start();
    for (let serial = 0; serial < 4; serial++) {
      driver.submit({ ...endless(`hostile ${serial}`, 1, 'hostile'), constraint: '{}' });
    }
    driver.engine.abort('hostile 0');
    await new Promise((resolve) => setImmediate(resolve));
    expect(woken()).toBeGreaterThan(0);
    expect(driver.engine.idle).toBe(false);
    for (let steps = 0; steps < 40; steps++) await step();
    expect(doneBy(driver, 'hostile')).toBe(3);
  });
});
