import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type DrawRequest, NEUTRAL_DRAW } from '../../../../origin/model/device-draws.ts';
import { openLibrary } from '../../../../origin/model/ort/ort-library.ts';
import type { GraphRunner } from '../../../../origin/model/runner/graph-runner.ts';
import { buildFakeCudaDriver, hasCompiler } from '../../../support/fake-cuda-driver.ts';
import { writeSyntheticModel } from '../../../support/synthetic/synthetic-model.ts';
import { lateRunner } from '../../../tools/gpu/runners.ts';
import { temporaryDirectory } from '../synthetic-runner.ts';

/**
 * Runs that begin before the tokens of the last one are read. The card computes when the host waits, and only
 * what it waits for.
 */

const SLOTS = 4;
const CONTEXT = 32;
const VOCABULARY = 300;

/** A driver and a runner on it. */
function opened(isOrdered = true) {
  const directory = temporaryDirectory();
  writeSyntheticModel(directory, { contextLength: CONTEXT, vocabulary: VOCABULARY });
  const { file } = buildFakeCudaDriver();
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

function decode(runner: GraphRunner, texts: Texts, uniform: number, continues: boolean): void {
  const rowOf = <T>(of: (text: number[] | null) => T) => texts.map(of);
  const logits = runner.decode({
    firstSlot: 0,
    rows: SLOTS,
    tokens: Int32Array.from(rowOf((text) => text?.at(-1) ?? 0)),
    positions: Int32Array.from(rowOf((text) => (text === null ? CONTEXT - 1 : text.length - 1))),
    idle: Uint8Array.from(rowOf((text) => Number(text === null))),
    draws: rowOf((text) => text && drawOf((uniform + text.length / 10) % 1)),
    continues,
  });
  for (const [row, text] of texts.entries()) {
    const drawn = runner.sparse!.draws!.drawn(logits.subarray(row * VOCABULARY, (row + 1) * VOCABULARY));
    text?.push(drawn!.id);
  }
}

async function prefill(runner: GraphRunner, slot: number, tokens: readonly number[]): Promise<void> {
  const chunk = { slot, start: 0, tokens: Int32Array.from(tokens), logitsAt: new Int32Array() };
  await runner.prefill(chunk, new AbortController().signal);
}

const slot = fc.nat(SLOTS - 1);
const operation = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('decode'),
      uniform: fc.double({ min: 0, max: 0.99, noNaN: true }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('prefill'), slot, token: fc.nat(VOCABULARY - 1) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('end'), slot }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('copy'), slot, to: slot }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('replace'), slot, token: fc.nat(VOCABULARY - 1) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('shorten'), slot }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('read'), slot }) },
);
type Operation = typeof operation extends fc.Arbitrary<infer O> ? O : never;

/** Performs operations on a runner. Returns all texts and KV that came of it, and the runs that it took. */
async function perform(runner: GraphRunner, operations: readonly Operation[], continues: boolean) {
  let texts: Texts = Array.from({ length: SLOTS }, () => null);
  const seen: unknown[] = [];
  let taken = 0;
  const note = (at: number) => {
    const text = texts[at];
    if (text) seen.push([[...text], Buffer.from(kvOf(runner, at, text.length - 1)).toString('hex')]);
  };
  for (const operation of operations) {
    const at = 'slot' in operation ? operation.slot : 0;
    const text = texts[at] ?? null;
    if (operation.kind === 'decode' && 'uniform' in operation) {
      texts = texts.map((row) => (row !== null && row.length < CONTEXT - 1 ? row : null));
      if (texts.every((row) => row === null)) continue;
      taken += Number(runner.hasBegun);
      decode(runner, texts, operation.uniform, continues);
    } else if (operation.kind === 'prefill' && 'token' in operation) {
      const tokens = [3, 1, 4, 1, 5, operation.token];
      await prefill(runner, at, tokens.slice(0, -1));
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
  return { seen, taken };
}

describe.runIf(hasCompiler)('runs that begin before the last tokens are read', () => {
  it('give the tokens and the KV of runs in turn, whatever comes between', { timeout: 120_000 }, async () => {
    const { runner } = opened();
    expect([runner.aheadFault, runner.runsAhead]).toEqual([null, true]);
    let taken = 0;
    const property = fc.asyncProperty(fc.array(operation, { minLength: 10, maxLength: 40 }), async (all) => {
      const begun = await perform(runner, all, true);
      taken += begun.taken;
      expect(begun.seen).toEqual((await perform(runner, all, false)).seen);
    });
    await fc.assert(property, { numRuns: 60, seed: 11 });
    expect(taken).toBeGreaterThan(100);
  });

  it('end before KV is written, copied or read, so that no slot is used while one writes to it', async () => {
    const { runner, queued } = opened();
    const uses = {
      prefill: () => prefill(runner, 3, [1, 2]),
      copy: () => runner.copy(0, 3, 4),
      write: () => runner.kvBytes.write(3, 0, [new Uint8Array(runner.kvBytes.positionBytes)]),
      read: () => void kvOf(runner, 0, 4),
      dispose: () => runner.dispose(),
    };
    for (const use of Object.values(uses)) {
      await prefill(runner, 0, [1, 2, 3, 4]);
      decode(runner, [[1, 2, 3, 4, 5], null, null, null], 0.5, true);
      expect([runner.hasBegun, queued()]).toEqual([true, 1]);
      await use();
      expect([runner.hasBegun, queued()]).toEqual([false, 0]);
    }
  });

  it('are given up at the start if the card draws before the logits are there', async () => {
    const { runner } = opened(false);
    expect([runner.aheadFault, runner.runsAhead, runner.drawFault]).toEqual([
      expect.stringMatching(/^run 1 gives row \d another token$/),
      false,
      null,
    ]);
    await prefill(runner, 0, [1, 2, 3, 4]);
    decode(runner, [[1, 2, 3, 4, 5], null, null, null], 0.5, true);
    expect(runner.hasBegun).toBe(false);
  });

  it('are lost with the run before them if that fails', async () => {
    const { runner, fail } = opened();
    const text = [1, 2, 3, 4, 5];
    await prefill(runner, 0, text.slice(0, -1));
    decode(runner, [text, null, null, null], 0.5, true);
    expect(runner.hasBegun).toBe(true);
    fail(700);
    expect(() => decode(runner, [text, null, null, null], 0.5, true)).toThrow('cuEventSynchronize');
    expect(runner.hasBegun).toBe(false);
    fail(0);
    decode(runner, [text, null, null, null], 0.5, true);
    expect(text).toHaveLength(7);
  });
});
