import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ModelRunner, RunTerminated } from '../../../origin/model/model-runner.ts';
import { float64Llama } from '../../support/float64-llama.ts';
import { writeSyntheticModel } from '../../support/synthetic/synthetic-model.ts';
import { onEachRunner } from './runner-tests.ts';
import type { RunnerCase } from './runners.ts';

/** After any sequence of slot operations, every run gives the logits of the tokens in its slot. */

const SLOTS = 4;
const CONTEXT = 96;
const CHUNK = 32;
const VOCABULARY = 256;

/** Some devices use other kernels for long runs than for short ones. */
const LONGEST = Array.from({ length: CHUNK }, (_, at) => (at * 31 + 7) % VOCABULARY);

const token = fc.nat(VOCABULARY - 1);
const slot = fc.nat(SLOTS - 1);
const operation = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('prefill' as const),
      slot,
      keep: fc.nat(CONTEXT),
      tokens: fc.array(token, { minLength: 1, maxLength: CHUNK }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('decode' as const),
      first: slot,
      tokens: fc.array(token, { minLength: 1, maxLength: SLOTS }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('copy' as const),
      from: slot,
      to: slot,
      keep: fc.nat(CONTEXT),
      piece: fc.integer({ min: 1, max: CONTEXT }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('carry' as const),
      from: slot,
      to: slot,
      keep: fc.nat(CONTEXT),
      parts: fc.array(fc.integer({ min: 1, max: CHUNK }), { minLength: 1, maxLength: 3 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('abort' as const),
      slot,
      keep: fc.nat(CONTEXT),
      tokens: fc.array(token, { minLength: 1, maxLength: CHUNK }),
    }),
  },
);
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

/** Applies operations to the runner and to lists of tokens. */
class Slots {
  readonly #held: number[][] = Array.from({ length: SLOTS }, () => []);
  readonly #runner: ModelRunner;
  readonly #expected: (tokens: readonly number[]) => Float64Array;
  worst = 0;

  constructor(runner: ModelRunner, expected: (tokens: readonly number[]) => Float64Array) {
    this.#runner = runner;
    this.#expected = expected;
  }

  async do(one: Operation): Promise<void> {
    if (one.kind === 'decode') return this.#decode(one.first, one.tokens);
    if (one.kind === 'copy') return this.#copy(one);
    if (one.kind === 'carry') return this.#carry(one);
    const held = this.#held[one.slot]!;
    const start = Math.min(one.keep, held.length, CONTEXT - CHUNK);
    const tokens = one.tokens.slice(0, Math.min(this.#runner.shape.prefillChunk, CONTEXT - 1 - start));
    const logitsAt = Int32Array.of(tokens.length - 1);
    const chunk = { slot: one.slot, start, tokens: Int32Array.from(tokens), logitsAt };
    held.length = start;
    const controller = new AbortController();
    const run = this.#runner.prefill(chunk, controller.signal);
    if (one.kind === 'abort') {
      controller.abort();
      // A run may be done before it can be stopped. What it wrote does not count.
      const failure = await run.then(
        () => null,
        (thrown: unknown) => thrown,
      );
      if (failure !== null) expect(failure).toBeInstanceOf(RunTerminated);
      return;
    }
    const logits = await run;
    held.push(...tokens);
    this.#compare(logits, held);
  }

  async #decode(first: number, tokens: readonly number[]): Promise<void> {
    const rows = Math.min(tokens.length, SLOTS - first);
    const held = this.#held.slice(first, first + rows);
    if (held.some(({ length }) => length >= CONTEXT - 1)) return;
    const positions = Int32Array.from(held, ({ length }) => length);
    const logits = await this.#runner.decode({
      firstSlot: first,
      rows,
      tokens: Int32Array.from(tokens),
      positions,
    });
    for (let row = 0; row < rows; row++) {
      held[row]!.push(tokens[row]!);
      this.#compare(logits.subarray(row * VOCABULARY, (row + 1) * VOCABULARY), held[row]!);
    }
  }

  #copy({ from, to, keep, piece }: Extract<Operation, { kind: 'copy' }>): void {
    const length = Math.min(keep, this.#held[from]!.length);
    for (let start = 0; start < length; start += piece) {
      this.#runner.copy(from, to, Math.min(start + piece, length), start);
    }
    if (from !== to) this.#held[to] = this.#held[from]!.slice(0, length);
  }

  /** Reads KV of one slot to the host and writes it after what another slot keeps of the same tokens. */
  #carry({ from, to, keep, parts }: Extract<Operation, { kind: 'carry' }>): void {
    const { kvBytes } = this.#runner;
    const source = this.#held[from]!;
    const different = this.#held[to]!.findIndex((token, at) => token !== source[at]);
    const common = different < 0 ? Math.min(this.#held[to]!.length, source.length) : different;
    const start = Math.min(keep, common);
    let end = start;
    const read = parts.map((length) => {
      const first = end;
      end = Math.min(first + length, source.length);
      const bytes = new Uint8Array(new SharedArrayBuffer((end - first) * kvBytes.positionBytes));
      kvBytes.read(from, first, end, bytes);
      return bytes;
    });
    const written = read.filter(({ length }) => length > 0);
    kvBytes.write(to, start, written);
    for (const part of written.splice(0, 1)) {
      const again = new Uint8Array(part.length);
      kvBytes.read(to, start, start + part.length / kvBytes.positionBytes, again);
      expect(again).toEqual(Uint8Array.from(part));
    }
    this.#held[to] = source.slice(0, end);
  }

  #compare(logits: Float32Array, tokens: readonly number[]): void {
    const expected = this.#expected(tokens);
    for (const [id, value] of expected.entries()) {
      this.worst = Math.max(this.worst, Math.abs(logits[id]! - value));
    }
  }
}

function slotsKeepTheirTokens({ precision, tolerance, open }: RunnerCase): void {
  const directory = mkdtempSync(join(tmpdir(), 'continuo-device-'));
  let runner: ModelRunner;
  let expected: (tokens: readonly number[]) => Float64Array;

  beforeAll(async () => {
    writeSyntheticModel(directory, { precision, contextLength: CONTEXT });
    const reference = float64Llama.load(join(directory, 'model.onnx'));
    expected = (tokens) => reference.forward([...tokens]).at(-1)!;
    runner = await open(directory, { slots: SLOTS, prefillChunk: CHUNK });
  });
  afterAll(() => {
    runner.dispose();
    rmSync(directory, { recursive: true });
  });

  it('through prefills, decodes, copies and aborts in any order', async () => {
    const operations = fc.array(operation, { minLength: 10, maxLength: 40, size: 'max' });
    await fc.assert(
      fc.asyncProperty(operations, async (all) => {
        const slots = new Slots(runner, expected);
        await slots.do({ kind: 'prefill', slot: 0, keep: 0, tokens: LONGEST });
        for (const one of all) await slots.do(one);
        expect(slots.worst).toBeLessThan(tolerance);
      }),
      { numRuns: 12, endOnFailure: true },
    );
  });
}

onEachRunner('slots keep their tokens', slotsKeepTheirTokens);
