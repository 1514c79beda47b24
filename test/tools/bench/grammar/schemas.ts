import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import Table from 'cli-table3';
import { WorkBudget } from '../../../../origin/grammar/automaton/work-budget.ts';
import { compileProgram } from '../../../../origin/grammar/compile.ts';
import {
  nextPosition,
  OUTSIDE,
  type TextPosition,
} from '../../../../origin/grammar/runtime/distinct-items.ts';
import { GrammarRuntime } from '../../../../origin/grammar/runtime/grammar-runtime.ts';
import { GrammarVocabulary } from '../../../../origin/grammar/runtime/grammar-vocabulary.ts';
import { ACCEPTING, StateTable } from '../../../../origin/grammar/runtime/state-table.ts';
import { textsOf } from '../../../../origin/model/config/model-directory.ts';
import { tokenBytesOf } from '../../../../origin/tokenizer/read-token-bytes.ts';
import { readTokenizerFiles } from '../../../../origin/tokenizer/tokenizer-files.ts';
import { ApiError } from '../../../../shared/errors.ts';
import { exactNumber, type SourceReviver } from '../../../../shared/exact-numbers.ts';
import { nullOn } from '../../../../shared/null-on.ts';
import { finished } from '../../../support/grammar/finished.ts';
import { largeVocabulary } from '../../../support/grammar/vocabularies.ts';
import { quantile } from '../statistics.ts';
import { RivalEngine } from './rival-engine.ts';

/** How objects are generated; see the request fields open_objects and any_key_order. */
export interface Style {
  readonly openObjects: boolean;
  readonly anyKeyOrder: boolean;
}

/** One file in the layout of MaskBench. */
export interface SchemaCase {
  readonly file: string;
  readonly schema: unknown;
  readonly tests: readonly { readonly valid: boolean; readonly data: unknown }[];
}

/** What an engine makes of one case. */
export interface Judgement {
  /** Compilation and the first mask. */
  readonly compileMs: number;
  /** For each instance; null if the schema is refused. */
  readonly accepted: readonly boolean[] | null;
  /** Masks of the first accepted instance, byte by byte. */
  readonly maskMs: readonly number[];
  /** Whether a mask of that instance needed too much work. */
  readonly failed?: boolean;
}

/** Parses cases. JSON.stringify writes their numbers as they are: 1.0 is no integer in draft 4. */
function parseCases(file: string, text: string): SchemaCase | SchemaCase[] {
  const written: SourceReviver = (_, value, { source }) =>
    typeof value === 'number' && source !== undefined ? exactNumber(source) : value;
  const content = JSON.parse(text, written as Parameters<typeof JSON.parse>[1]) as SchemaCase | SchemaCase[];
  const plain = ({ schema, tests }: SchemaCase): SchemaCase => ({
    file,
    schema: JSON.parse(JSON.stringify(schema)),
    tests,
  });
  return Array.isArray(content) ? content.map(plain) : plain(content);
}

/**
 * Reads a file in the layout of MaskBench, or of JSON-Schema-Test-Suite: a list of cases in a directory of a
 * draft.
 */
function readCases(directory: string, file: string): SchemaCase[] {
  const content = parseCases(file, readFileSync(path.join(directory, file), 'utf8'));
  if (!Array.isArray(content)) return [content];
  const draft = /draft[4-7]/.exec(path.resolve(directory))?.[0];
  if (draft === undefined) return content;
  const $schema = `http://json-schema.org/draft-0${draft.at(-1)}/schema#`;
  return content.map((one) =>
    typeof one.schema === 'object' ? { ...one, schema: { $schema, ...one.schema } } : one,
  );
}

/** Returns null if the product refuses. */
const unlessRefused = <T>(run: () => T): T | null => nullOn(ApiError, run);

function compile(value: unknown, style: Style) {
  return unlessRefused(() => compileProgram({ type: 'json_schema', value, ...style }));
}

type Program = NonNullable<ReturnType<typeof compile>>;

function accepts(program: Program, text: Uint8Array): boolean {
  const table = new StateTable(program);
  const budget = new WorkBudget(Number.MAX_SAFE_INTEGER);
  let position: TextPosition | null = { state: table.initial, level: OUTSIDE };
  for (const byte of text) {
    position = nextPosition(table, position, byte, budget);
    if (position === null) return false;
  }
  return (table.flags.data[position.state]! & ACCEPTING) !== 0;
}

/**
 * Returns the time of each mask of an accepted text, whose tokens are its bytes, in milliseconds, and whether
 * one failed.
 */
function timeMasks(runtime: GrammarRuntime, text: Uint8Array): Pick<Judgement, 'maskMs' | 'failed'> {
  const times: number[] = [];
  const constraint = runtime.start();
  const ended = unlessRefused(() => {
    for (const byte of text) {
      const start = performance.now();
      finished(() => constraint.mask());
      times.push(performance.now() - start);
      constraint.acceptBytes(Uint8Array.of(byte));
    }
    return true;
  });
  return { maskMs: times, failed: ended === null };
}

function judge({ schema, tests }: SchemaCase, style: Style, vocabulary: GrammarVocabulary): Judgement {
  const start = performance.now();
  const compiled = unlessRefused(() => {
    const program = compile(schema, style);
    if (program === null) return null;
    const runtime = new GrammarRuntime(program, vocabulary);
    const first = runtime.start();
    finished(() => first.mask());
    return { program, runtime };
  });
  const compileMs = performance.now() - start;
  if (compiled === null) return { compileMs, accepted: null, maskMs: [] };
  const { program, runtime } = compiled;
  const texts = tests.map(({ data }) => new TextEncoder().encode(JSON.stringify(data)));
  const accepted = texts.map((text) => accepts(program, text));
  const first = texts[accepted.indexOf(true)];
  return { compileMs, accepted, ...(first === undefined ? { maskMs: [] } : timeMasks(runtime, first)) };
}

const at = (times: readonly number[], ...quantiles: readonly number[]): string =>
  times.length === 0 ? '–' : quantiles.map((share) => quantile(times, share).toPrecision(3)).join(', ');

const mean = (numbers: readonly number[]): number =>
  numbers.reduce((sum, number) => sum + number, 0) / Math.max(1, numbers.length);

/** One column of the table. */
function column(cases: readonly SchemaCase[], judgements: readonly Judgement[]): string[] {
  const share = (count: number) => `${((100 * count) / cases.length).toFixed(1)} %`;
  const judged = judgements.map(({ accepted }, index) =>
    (accepted ?? []).map((isAccepted, test) => ({ isAccepted, valid: cases[index]!.tests[test]!.valid })),
  );
  const compiled = judgements.filter(({ accepted }) => accepted !== null).length;
  const right = judged.filter(
    (tests, index) =>
      judgements[index]!.accepted !== null && tests.every(({ isAccepted, valid }) => isAccepted === valid),
  );
  const unsound = judged.flat().filter(({ isAccepted, valid }) => isAccepted && !valid).length;
  const masks = judgements.flatMap(({ maskMs }) => maskMs);
  return [
    share(compiled),
    share(right.length),
    String(unsound),
    String(judgements.filter(({ failed }) => failed).length),
    at(
      judgements.map(({ compileMs }) => compileMs),
      0.5,
      0.99,
    ),
    at(masks, 0.5, 0.99, 0.999),
    mean(masks).toPrecision(3),
  ];
}

const ROWS = [
  'Schemas compiled',
  'Every instance right',
  'Invalid instances accepted',
  'Valid texts that fail',
  'Compile and first mask p50, p99 (ms)',
  'Mask p50, p99, p99.9 (ms)',
  'Mask, mean (ms)',
];

export interface SchemasOptions {
  readonly directory: string;
  readonly style: Style;
  /** A model directory; absent = a synthetic vocabulary of 152,000 tokens. */
  readonly vocabulary?: string | undefined;
  /** A Python interpreter with llguidance and xgrammar; absent = without them. */
  readonly python?: string | undefined;
}

/** The files with a valid text that failed, a line each. */
const failuresOf = (cases: readonly SchemaCase[], judgements: readonly Judgement[]): string =>
  cases
    .flatMap(({ file }, index) => (judgements[index]!.failed ? `\nA valid text fails: ${file}` : []))
    .join('');

/** Compiles every schema of a directory, walks its instances; returns a table with a column per engine. */
export async function measureSchemas({
  directory,
  style,
  vocabulary,
  python,
}: SchemasOptions): Promise<string> {
  const tokens =
    vocabulary === undefined
      ? largeVocabulary()
      : tokenBytesOf(readTokenizerFiles(textsOf(vocabulary)).tokenizer, 0);
  const own = new GrammarVocabulary(tokens);
  const files = readdirSync(directory).filter((name) => name.endsWith('.json'));
  const cases = files.flatMap((file) => readCases(directory, file));
  const table = new Table({ style: { head: [], border: [] } });
  const head = ['Continuo'];
  const judged = cases.map((one) => judge(one, style, own));
  const columns = [column(cases, judged)];
  for (const name of python === undefined ? [] : (['llguidance', 'xgrammar'] as const)) {
    await using engine = new RivalEngine(name, python!, tokens, style);
    const judgements: Judgement[] = [];
    for (const one of cases) judgements.push(await engine.judge(one));
    head.push(name);
    columns.push(column(cases, judgements));
  }
  table.push(['', ...head], ...ROWS.map((row, index) => [row, ...columns.map((cells) => cells[index]!)]));
  return `${cases.length} schemas, ${tokens.vocabularySize} tokens\n${table}${failuresOf(cases, judged)}`;
}
