import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { type DrawRequest, NEUTRAL_DRAW } from '../../../../../origin/model/device-draws.ts';
import { openLibrary } from '../../../../../origin/model/ort/ort-library.ts';
import { OrtSession } from '../../../../../origin/model/ort/ort-session.ts';
import type { GraphRunner } from '../../../../../origin/model/runner/device/graph-runner.ts';
import { buildFakeCudaDriver, hasCompiler } from '../../../../support/fake-cuda-driver.ts';
import { runs } from '../../../../support/random.ts';
import { type SyntheticModel, writeSyntheticModel } from '../../../../support/synthetic/synthetic-model.ts';
import { lateRunner } from '../../../../tools/gpu/runners.ts';
import { temporaryDirectory } from '../../synthetic-runner.ts';

/**
 * Runs that begin before the tokens of the last one are read. The card computes when the host waits, and only
 * what it waits for.
 */

const SLOTS = 4;
const CONTEXT = 32;
const VOCABULARY = 300;

let driverFile: string | null = null;

/** A driver and a runner on it. */
function opened(isOrdered = true, numbers: Partial<SyntheticModel> = {}) {
  const directory = temporaryDirectory();
  writeSyntheticModel(directory, { contextLength: CONTEXT, vocabulary: VOCABULARY, ...numbers });
  driverFile ??= buildFakeCudaDriver().file;
  const file = driverFile;
  const library = openLibrary(file);
  const runner = lateRunner(directory, { slots: SLOTS, prefillChunk: 8 }, file, { isOrdered }) as GraphRunner;
  onTestFinished(() => runner.dispose());
  return {
    runner,
    fail: library.func('fail_with', 'void', ['int']),
    queued: library.func('work', 'int', []),
  };
}

const drawOf = (uniform: number): DrawRequest => ({
  ...NEUTRAL_DRAW,
  isGreedy: uniform < 0.2,
  coldness: 0.7,
  uniform,
});

/** A text in a slot: its tokens, of which the last one is not computed. */
type Texts = (number[] | null)[];

/** Returns the bytes that the slot has of the text. */
function kvOf(runner: GraphRunner, slot: number, length: number): Uint8Array {
  const bytes = new Uint8Array(length * runner.kvBytes.positionBytes);
  runner.kvBytes.read(slot, 0, length, bytes);
  return bytes;
}

const rowOf = (text: readonly number[], slot: number) => ({
  slot,
  token: text.at(-1)!,
  position: text.length - 1,
});

/**
 * Adds a token to each text; if a run has begun, to those of it, and the others join the next one.
 * @param chosen slots of the texts that get one, whatever has begun
 * @returns these slots, and the rows of the run
 */
function decode(runner: GraphRunner, texts: Texts, continues: boolean, chosen?: ReadonlySet<number>) {
  const slots = [...texts.keys()].filter((slot) => texts[slot] !== null);
  const begun = slots.filter((slot) => runner.hasBegun(rowOf(texts[slot]!, slot)));
  const asked = chosen ?? new Set(begun.length > 0 ? begun : slots);
  const rows = texts.slice(0, 1 + Math.max(...asked)).map((text, slot) => (asked.has(slot) ? text : null));
  const ofRows = <T>(of: (text: number[] | null) => T) => rows.map(of);
  const logits = runner.decode({
    firstSlot: 0,
    rows: rows.length,
    tokens: Int32Array.from(ofRows((text) => text?.at(-1) ?? 0)),
    // The runner knows better where an idle row may write.
    positions: Int32Array.from(ofRows((text) => (text === null ? 0 : text.length - 1))),
    idle: Uint8Array.from(ofRows((text) => Number(text === null))),
    draws: ofRows((text) => text && drawOf((text.length * 0.37) % 1)),
    continues,
    joining: slots.filter((slot) => !asked.has(slot)).map((slot) => rowOf(texts[slot]!, slot)),
  });
  const rowAt = (row: number) => logits.subarray(row * VOCABULARY, (row + 1) * VOCABULARY);
  for (const [row, text] of rows.entries()) text?.push(runner.sparse!.draws!.drawn(rowAt(row))!.id);
  return { asked, rowAt };
}

const chunkOf = (slot: number, tokens: readonly number[]) => ({
  slot,
  start: 0,
  tokens: Int32Array.from(tokens),
  logitsAt: Int32Array.of(tokens.length - 1),
});

const prefill = (runner: GraphRunner, slot: number, tokens: readonly number[]) =>
  runner.prefill(chunkOf(slot, tokens), new AbortController().signal);

const hexOf = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
const bitsOf = (logits: Float32Array) => hexOf(new Uint8Array(logits.slice().buffer));

const slot = fc.nat(SLOTS - 1);
const token = fc.nat(VOCABULARY - 1);
/** Of the row that the host reads although the card has drawn from it. */
const needed = fc.option(slot);
const operation = fc.oneof(
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('decode'), needed }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('prefill'), slot, token }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('join'), slot, token, needed }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('end'), slot }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('copy'), slot, to: slot }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('replace'), slot, token }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('shorten'), slot }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('read'), slot }) },
);
type Operation = typeof operation extends fc.Arbitrary<infer O> ? O : never;

/**
 * Performs operations on a runner.
 * @param steps the slots of each decode step, of a runner that begins runs early; absent = this one does
 * @returns all texts, KV and logits of prompts that came of it, and how many runs began early
 */
async function perform(
  runner: GraphRunner,
  operations: readonly Operation[],
  steps?: readonly ReadonlySet<number>[],
) {
  let texts: Texts = Array.from({ length: SLOTS }, () => null);
  const seen: unknown[] = [];
  const made: ReadonlySet<number>[] = [];
  let taken = 0;
  let joined = 0;
  const step = (wanted: number | null) => {
    texts = texts.map((row) => (row !== null && row.length < CONTEXT - 1 ? row : null));
    if (texts.every((row) => row === null)) return;
    taken += Number(texts.some((row, at) => row !== null && runner.hasBegun(rowOf(row, at))));
    const { asked, rowAt } = decode(runner, texts, steps === undefined, steps?.[made.length]);
    made.push(asked);
    if (wanted === null || !asked.has(wanted)) return;
    runner.sparse!.complete(rowAt(wanted));
    seen.push(bitsOf(rowAt(wanted)));
  };
  const note = (at: number) => {
    const text = texts[at];
    if (text) seen.push([[...text], hexOf(kvOf(runner, at, text.length - 1))]);
  };
  for (const operation of operations) {
    const at = 'slot' in operation ? operation.slot : 0;
    const wanted = 'needed' in operation ? operation.needed : null;
    const text = texts[at] ?? null;
    if (operation.kind === 'decode') step(wanted);
    else if ((operation.kind === 'prefill' || operation.kind === 'join') && 'token' in operation) {
      const tokens = [...[3, 1, 4, 1, 5, 9, 2].slice(operation.token % 7), operation.token];
      texts[at] = null;
      const prompt = tokens.slice(0, -1);
      const isBehind = operation.kind === 'join' && steps === undefined;
      const begun = isBehind ? runner.beginPrefill([chunkOf(at, prompt)]) : null;
      joined += Number(begun !== null);
      const logits = begun === null ? bitsOf(await prefill(runner, at, prompt)) : null;
      if (operation.kind === 'join') step(wanted);
      seen.push(logits ?? bitsOf(begun!.finish()));
      texts[at] = tokens;
    } else if (operation.kind === 'end') {
      note(at);
      texts[at] = null;
    } else if (operation.kind === 'copy' && 'to' in operation && text !== null) {
      runner.copy(at, operation.to, text.length - 1);
      texts[operation.to] = [...text];
    } else if (operation.kind === 'replace' && 'token' in operation && text !== null) {
      // As if the host had chosen another token than the card.
      texts[at] = [...text.slice(0, -1), operation.token];
    } else if (operation.kind === 'shorten' && text !== null && text.length > 7) {
      texts[at] = [...text.slice(0, -2), text.at(-1)!];
    } else if (operation.kind === 'read') note(at);
  }
  for (let at = 0; at < SLOTS; at++) note(at);
  return { seen, made, taken, joined };
}

describe.runIf(hasCompiler)('runs that begin before the last tokens are read', () => {
  it.each<readonly [string, Partial<SyntheticModel>]>([
    ['as activations', {}],
    ['in 8 bits', { kv: 'int8', kvScales: 'per-channel' }],
  ])('give the tokens and the KV of runs in turn, whatever comes between: KV %s', async (_, numbers) => {
    const { runner } = opened(true, numbers);
    expect([runner.aheadFault, runner.runsAhead]).toEqual([null, true]);
    const counts = { taken: 0, joined: 0 };
    const property = fc.asyncProperty(fc.array(operation, { minLength: 10, maxLength: 40 }), async (all) => {
      const begun = await perform(runner, all);
      counts.taken += begun.taken;
      counts.joined += begun.joined;
      expect(begun.seen).toEqual((await perform(runner, all, begun.made)).seen);
    });
    const numRuns = runs(60);
    await fc.assert(property, { numRuns });
    expect(counts.taken).toBeGreaterThan(2 * numRuns);
    expect(counts.joined).toBeGreaterThan(numRuns / 2);
  });

  it('end before KV changes or a prompt uses their memory, and keep all rows but those of changed slots', async () => {
    const { runner, queued } = opened();
    const uses = {
      prefill: () => prefill(runner, 3, [1, 2]),
      copy: () => runner.copy(0, 3, 4),
      write: () => runner.kvBytes.write(3, 0, [new Uint8Array(runner.kvBytes.positionBytes)]),
      dispose: () => runner.dispose(),
    };
    for (const use of Object.values(uses)) {
      const texts = [[1, 2, 3, 4, 5], null, null, [9, 8]];
      await prefill(runner, 0, [1, 2, 3, 4]);
      await prefill(runner, 3, [9]);
      decode(runner, texts, true);
      const has = () => [0, 3].map((slot) => runner.hasBegun(rowOf(texts[slot]!, slot)));
      expect([has(), queued()]).toEqual([[true, true], 1]);
      await use();
      expect(queued()).toBe(0);
      expect(has()[0]).toBe(true);
      if (use !== uses.dispose) expect(has()[1]).toBe(false);
    }
  });

  it('keep no session after the runner, even if the card fails while it is waited for', async () => {
    const { runner, fail } = opened();
    const text = [1, 2, 3];
    await prefill(runner, 0, [1, 2]);
    decode(runner, [text, null, null, null], true);
    const dispose = vi.spyOn(OrtSession.prototype, 'dispose');
    onTestFinished(() => dispose.mockRestore());
    fail(700);
    expect(() => runner.dispose()).toThrow('cuStreamSynchronize');
    fail(0);
    // The decoder's, and two that score prompts.
    expect(dispose).toHaveBeenCalledTimes(3);
  });

  it('are lost if a sampler needs the logits that they have overwritten', async () => {
    const { runner } = opened();
    const text = [1, 2, 3];
    await prefill(runner, 0, [1, 2]);
    const [tokens, positions] = [Int32Array.of(3), Int32Array.of(2)];
    const batch = { firstSlot: 0, rows: 1, tokens, positions };
    const whole = bitsOf(runner.decode(batch).subarray(0, VOCABULARY));
    const row = runner.decode({ ...batch, draws: [drawOf(0.5)], continues: true }).subarray(0, VOCABULARY);
    text.push(runner.sparse!.draws!.drawn(row)!.id);
    expect(runner.hasBegun(rowOf(text, 0))).toBe(true);
    runner.sparse!.complete(row);
    expect([bitsOf(row), runner.hasBegun(rowOf(text, 0))]).toEqual([whole, false]);
  });

  it('bring back overwritten logits without a write to the prompt of a slot that has become free', async () => {
    const { runner } = opened();
    const prompt = [7, 6, 5, 4, 3, 2, 1];
    const expected = bitsOf(await prefill(runner, 3, prompt));
    const texts: Texts = [[1, 2, 3], null, null, [9, 8, 7]];
    for (const at of [0, 3]) await prefill(runner, at, texts[at]!.slice(0, -1));
    decode(runner, texts, true);
    const text = texts[0]!;
    const begun = runner.beginPrefill([chunkOf(3, prompt)])!;
    const [tokens, positions] = [Int32Array.of(text.at(-1)!), Int32Array.of(text.length - 1)];
    const batch = { firstSlot: 0, rows: 1, tokens, positions, draws: [drawOf(0.5)], continues: true };
    runner.sparse!.complete(runner.decode(batch).subarray(0, VOCABULARY));
    expect(bitsOf(begun.finish())).toBe(expected);
    const after = hexOf(kvOf(runner, 3, prompt.length));
    await prefill(runner, 2, prompt);
    expect(after).toBe(hexOf(kvOf(runner, 2, prompt.length)));
  });

  it('have the rows that join them', async () => {
    const { runner } = opened();
    const texts: Texts = [[1, 2, 3], null, null, null];
    await prefill(runner, 0, [1, 2]);
    decode(runner, texts, true);
    await prefill(runner, 3, [5, 6]);
    texts[3] = [5, 6, 7];
    expect(decode(runner, texts, true).asked).toEqual(new Set([0]));
    expect(decode(runner, texts, true).asked).toEqual(new Set([0, 3]));
  });

  it('do not delay reads of KV, which they do not touch', async () => {
    const { runner, queued } = opened();
    const text = [1, 2, 3, 4, 5];
    await prefill(runner, 0, text.slice(0, -1));
    const before = kvOf(runner, 0, 4);
    decode(runner, [text, null, null, null], true);
    expect(kvOf(runner, 0, 4)).toEqual(before);
    expect([queued(), runner.hasBegun(rowOf(text, 0))]).toEqual([1, true]);
    expect(runner.beginPrefill([chunkOf(1, [1, 2])])).not.toBe(null);
    kvOf(runner, 1, 2);
    expect(queued()).toBe(0);
  });

  it('do not count for a new text in a slot, even if it has the same token at the same position', async () => {
    const { runner } = opened();
    const texts: Texts = [[1, 2, 3, 4, 5], [5, 4, 3, 2, 1], null, null];
    for (const at of [0, 1]) await prefill(runner, at, texts[at]!.slice(0, -1));
    decode(runner, texts, true);
    const row = rowOf(texts[1]!, 1);
    expect(runner.hasBegun(row)).toBe(true);
    runner.beginPrefill([chunkOf(1, Array(row.position).fill(7))])!.finish();
    expect(runner.hasBegun(row)).toBe(false);
    expect(runner.hasBegun(rowOf(texts[0]!, 0))).toBe(true);
  });

  it('are given up at the start if the card draws before the logits are there', async () => {
    const { runner } = opened(false);
    expect([runner.aheadFault, runner.runsAhead, runner.drawFault]).toEqual([
      expect.stringMatching(/^run 1 gives row \d another token$/),
      false,
      null,
    ]);
    const text = [1, 2, 3, 4, 5];
    await prefill(runner, 0, text.slice(0, -1));
    decode(runner, [text, null, null, null], true);
    expect(runner.hasBegun(rowOf(text, 0))).toBe(false);
    expect(runner.beginPrefill([chunkOf(1, [1, 2])])).toBe(null);
  });

  it('are lost with the run before them if that fails, and a prompt behind them is computed again', async () => {
    const { runner, fail } = opened();
    const text = [1, 2, 3, 4, 5];
    await prefill(runner, 0, text.slice(0, -1));
    decode(runner, [text, null, null, null], true);
    const row = rowOf(text, 0);
    const begun = runner.beginPrefill([chunkOf(1, [1, 2, 3])])!;
    fail(700);
    expect(() => decode(runner, [text, null, null, null], true)).toThrow('cuEventSynchronize');
    expect(() => begun.finish()).toThrow('cuEventSynchronize');
    expect(runner.hasBegun(row)).toBe(false);
    fail(0);
    const logits = bitsOf(await prefill(runner, 1, [1, 2, 3]));
    expect(bitsOf(runner.beginPrefill([chunkOf(2, [1, 2, 3])])!.finish())).toBe(logits);
    decode(runner, [text, null, null, null], true);
    expect(text).toHaveLength(7);
  });
});
