import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { compileProgram } from '../../../origin/grammar/compile.ts';
import { nextPosition, startOf, type TextPosition } from '../../../origin/grammar/runtime/distinct-arrays.ts';
import { GrammarRuntime } from '../../../origin/grammar/runtime/grammar-runtime.ts';
import { GrammarVocabulary } from '../../../origin/grammar/runtime/grammar-vocabulary.ts';
import { ACCEPTING, StateTable } from '../../../origin/grammar/runtime/state-table.ts';
import { WorkBudget } from '../../../origin/grammar/work-budget.ts';
import { ApiError } from '../../../shared/errors.ts';
import { largeVocabulary } from '../../support/grammar/vocabularies.ts';
import { quantile } from '../statistics.ts';

/** How objects are generated; see the request fields open_objects and any_key_order. */
interface Style {
  readonly openObjects: boolean;
  readonly anyKeyOrder: boolean;
}

/** One file in the layout of MaskBench. */
interface SchemaCase {
  readonly schema: unknown;
  readonly tests: readonly { readonly valid: boolean; readonly data: unknown }[];
}

/** Reads a file in the layout of MaskBench, or of JSON-Schema-Test-Suite: a list of cases in a directory of a draft. */
function readCases(directory: string, file: string): SchemaCase[] {
  const content = JSON.parse(readFileSync(path.join(directory, file), 'utf8')) as SchemaCase | SchemaCase[];
  if (!Array.isArray(content)) return [content];
  const draft = /draft[4-7]/.exec(path.resolve(directory))?.[0];
  if (draft === undefined) return content;
  const $schema = `http://json-schema.org/draft-0${draft.at(-1)}/schema#`;
  return content.map((one) =>
    typeof one.schema === 'object' ? { ...one, schema: { $schema, ...one.schema } } : one,
  );
}

/** The time that the compile pool gives one compilation, in milliseconds. */
const TIME_LIMIT_MS = 2000;

/** Returns null if the product refuses. */
function unlessRefused<T>(run: () => T): T | null {
  try {
    return run();
  } catch (error) {
    if (error instanceof ApiError) return null;
    throw error;
  }
}

function compile(value: unknown, style: Style) {
  const end = performance.now() + TIME_LIMIT_MS;
  return unlessRefused(() =>
    compileProgram({ type: 'json_schema', value, ...style }, () => performance.now() > end),
  );
}

type Program = NonNullable<ReturnType<typeof compile>>;

function accepts(program: Program, text: Uint8Array): boolean {
  const table = new StateTable(program);
  const budget = new WorkBudget('The instance', Number.MAX_SAFE_INTEGER);
  let position: TextPosition | null = startOf(table);
  for (const byte of text) {
    position = nextPosition(table, position, byte, budget);
    if (position === null) return false;
  }
  return (table.flags.data[position.state]! & ACCEPTING) !== 0;
}

/** Pushes the time of each mask of an accepted text, whose tokens are its bytes, in milliseconds. */
function timeMasks(runtime: GrammarRuntime, text: Uint8Array, times: number[]): true {
  const constraint = runtime.start();
  for (const byte of text) {
    const start = performance.now();
    constraint.mask();
    times.push(performance.now() - start);
    constraint.acceptBytes(Uint8Array.of(byte));
  }
  return true;
}

const at = (times: readonly number[]): string =>
  `p50 ${quantile(times, 0.5).toFixed(3)} ms, p99 ${quantile(times, 0.99).toFixed(3)} ms`;

/** Compiles every schema of a directory, walks its instances, and returns the figures as text. */
export function measureSchemas(directory: string, style: Style): string {
  const vocabulary = new GrammarVocabulary(largeVocabulary());
  const files = readdirSync(directory).filter((name) => name.endsWith('.json'));
  const compiles: number[] = [];
  const masks: number[] = [];
  let [compiled, right, unsound, cut] = [0, 0, 0, 0];
  const cases = files.flatMap((file) => readCases(directory, file));
  for (const { schema, tests } of cases) {
    const start = performance.now();
    const program = compile(schema, style);
    compiles.push(performance.now() - start);
    if (program === null) continue;
    compiled += 1;
    const judged = tests.map(({ valid, data }) => {
      const text = new TextEncoder().encode(JSON.stringify(data));
      return { valid, text, accepted: accepts(program, text) };
    });
    if (judged.every(({ valid, accepted }) => valid === accepted)) right += 1;
    unsound += judged.filter(({ valid, accepted }) => !valid && accepted).length;
    const first = judged.find(({ accepted }) => accepted);
    if (first === undefined) continue;
    const followed = unlessRefused(() =>
      timeMasks(new GrammarRuntime(program, vocabulary), first.text, masks),
    );
    if (followed === null) cut += 1;
  }
  const share = (count: number) => `${((100 * count) / cases.length).toFixed(1)} %`;
  return [
    `${cases.length} schemas: ${share(compiled)} compiled, ${share(right)} with every instance right`,
    `${unsound} invalid instances accepted`,
    `compile: ${at(compiles)}`,
    `masks of the first accepted instance, a vocabulary of ${vocabulary.tokens.vocabularySize}: ${at(masks)}; ${cut} cut short by the budget of a step`,
  ].join('\n');
}
