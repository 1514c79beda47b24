import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { buildModel } from '../../../origin/export/build.ts';
import { describeFamily } from '../../../origin/export/families/families.ts';
import { prefill } from '../../../origin/hub/check/greedy.ts';
import { ModelError } from '../../../origin/model/config/model-json.ts';
import { openModel } from '../../../origin/model/open/open-model.ts';
import { type FamilyCase, floatsOf, PROMPT } from '../../origin/export/family-cases.ts';
import { hashedCheckpoint } from '../../origin/export/hashed-checkpoint.ts';
import { chooseMutations, type Mutation } from './mutations.ts';

/** Compares changed configurations that the builder accepts with what transformers makes of them. */

/**
 * Changed scales of scores make rounding larger than in the cases themselves; other readings differ by 0.05
 * and more.
 */
const TOLERANCE = 0.01;

/**
 * Refused by the builder; accepted with the logits of transformers; refused by transformers only; or
 * different.
 */
type Outcome = 'refused' | 'equal' | 'transformers refuses' | 'differs';

/** @returns whether no accepted configuration has other logits than in transformers */
export async function checkMutations(
  python: string,
  script: string,
  models: string,
  which: { readonly count: number; readonly only?: string | undefined },
): Promise<boolean> {
  const reference = new Reference(spawn(python, [script, models]));
  const builder = new Builder(join(models, 'mutated'));
  const found: Record<Outcome, number> = { refused: 0, equal: 0, 'transformers refuses': 0, differs: 0 };
  try {
    for (const mutation of chooseMutations(which)) {
      const { outcome, note } = await compare(mutation, builder, reference);
      found[outcome] += 1;
      if (note !== '') console.log(`${mutation.of.name}: ${mutation.change}: ${outcome}: ${note}`);
    }
  } finally {
    reference.end();
  }
  console.log(
    Object.entries(found)
      .map(([outcome, times]) => `${outcome}: ${times}`)
      .join(', '),
  );
  return found.differs === 0;
}

async function compare(
  { of, config }: Mutation,
  builder: Builder,
  reference: Reference,
): Promise<{ outcome: Outcome; note: string }> {
  let own: Built;
  try {
    own = await builder.logits(of, config);
  } catch (error) {
    if (error instanceof ModelError) return { outcome: 'refused', note: '' };
    return { outcome: 'differs', note: `the builder fails with ${String(error)}` };
  }
  const expected = await reference.logits(of.name, config, own.length);
  if (typeof expected === 'string') return { outcome: 'transformers refuses', note: expected };
  const difference = Math.max(
    ...expected.map((logit, id) => Math.abs(logit - (own.logits[id] ?? Number.NaN))),
  );
  if (difference <= TOLERANCE) return { outcome: 'equal', note: '' };
  return { outcome: 'differs', note: `by ${difference}` };
}

interface Built {
  /** Tokens of the prompt: all, or as many as the context has. */
  readonly length: number;
  readonly logits: Float32Array;
}

/**
 * The logits of the positions of `rows` that the context has, after each other. A design that was built
 * before is not built again.
 */
class Builder {
  readonly #directory: string;
  readonly #known = new Map<string, Built | ModelError>();

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** @throws ModelError if the configuration is refused */
  async logits(of: FamilyCase, config: Readonly<Record<string, unknown>>): Promise<Built> {
    const { design } = describeFamily(config, new Set(Object.keys(of.tensors)));
    const { layers, ...whole } = design;
    const key = JSON.stringify([of.name, whole, layers.length, layers.slice(0, 8)]);
    const known = this.#known.get(key) ?? (await this.#build(of, config));
    this.#known.set(key, known);
    if (known instanceof ModelError) throw known;
    return known;
  }

  async #build(of: FamilyCase, config: Readonly<Record<string, unknown>>): Promise<Built | ModelError> {
    const directory = this.#directory;
    rmSync(directory, { recursive: true, force: true });
    try {
      await buildModel(hashedCheckpoint(config, of.tensors), { precision: 'fp32', directory });
    } catch (error) {
      if (error instanceof ModelError) return error;
      throw error;
    }
    const { runner } = await openModel({ directory, slots: 1, threads: 1, kvLimitBytes: 2 ** 30 });
    try {
      const length = Math.min(PROMPT.length, runner.shape.contextLength);
      const logits: number[] = [];
      for (const { position } of of.rows)
        if (position < length) logits.push(...(await prefill(runner, 0, PROMPT.slice(0, position + 1))));
      return { length, logits: Float32Array.from(logits) };
    } finally {
      runner.dispose();
    }
  }
}

/** reference_server.py */
class Reference {
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #lines: AsyncIterator<string>;

  constructor(process: ChildProcessWithoutNullStreams) {
    this.#process = process;
    this.#lines = createInterface({ input: process.stdout })[Symbol.asyncIterator]();
  }

  /** @returns the logits of all rows, or why transformers has none */
  async logits(
    name: string,
    config: Readonly<Record<string, unknown>>,
    length: number,
  ): Promise<Float32Array | string> {
    this.#process.stdin.write(`${JSON.stringify({ case: name, config, length })}\n`);
    const { value } = await this.#lines.next();
    const answer = JSON.parse(value) as { logits?: string; error?: string };
    return answer.logits === undefined ? (answer.error ?? '') : floatsOf(answer.logits);
  }

  end(): void {
    this.#process.stdin.end();
  }
}
