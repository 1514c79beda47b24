import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import Table from 'cli-table3';
import { errorMessage } from '../../../shared/error-details.ts';
import { checkMutations } from './check-mutations.ts';
import { type Comparison, compareTokens } from './compare.ts';
import { checkFamilies } from './own-builder.ts';

/**
 * `npm run test:exporters`: exports small random models with Optimum and onnxruntime-genai's builder, and
 * compares greedy tokens with transformers and, for the builder, with ONNX Runtime's own run of the exported
 * graph. Also compares the bits of a row alone, in a batch of eight and after a cached prefix. Needs Python
 * 3.11 and installs the exporters into a temporary folder (about 10 GB). `-- --architecture llama --exporter
 * builder --precision int4` runs the rows that match. `-- --builder own` builds a model of every family with
 * this repository's builder instead. It then changes their configurations in 2,000 ways (`--mutations N`)
 * and compares what the builder accepts. `--case NAME` chooses one model, which is changed only with
 * `--mutations`. Existing environments and models can be used
 * instead: `--optimum-python PATH --builder-python PATH --own-python PATH --models FOLDER`.
 * Exits with code 1 if a model differs, or does not start although it should.
 */

type Exporter = 'optimum' | 'builder';
type ExportedPrecision = 'fp32' | 'fp16' | 'fp16-cpu' | 'fp16-cuda' | 'int4';

interface Case {
  readonly architecture: string;
  readonly exporter: Exporter;
  readonly precision: ExportedPrecision;
  /** Why the origin must refuse the model; absent = it must serve it. */
  readonly refusal?: RegExp;
}

const rows = (exporter: Exporter, precision: ExportedPrecision, architectures: readonly string[]): Case[] =>
  architectures.map((architecture) => ({ architecture, exporter, precision }));

const CASES: readonly Case[] = [
  ...rows('optimum', 'fp32', [
    ...['llama', 'mistral', 'gemma', 'gemma2', 'gemma3_text', 'gemma3', 'phi', 'qwen2', 'qwen3', 'qwen3_moe'],
    ...[
      'gpt2',
      'gpt_bigcode',
      'gpt_neo',
      'gpt_neox',
      'gptj',
      'gpt_oss',
      'codegen',
      'bloom',
      'falcon',
      'mpt',
      'opt',
    ],
    ...['arcee', 'cohere', 'glm', 'granite', 'helium', 'nemotron', 'olmo', 'olmo2', 'smollm3', 'stablelm'],
  ]),
  { ...rows('optimum', 'fp32', ['deepseek_v3'])[0]!, refusal: /multi-head latent attention/ },
  ...rows('optimum', 'fp16', ['llama']),
  ...rows('builder', 'fp32', [
    ...['llama', 'mistral', 'gemma', 'gemma2', 'phi', 'phi3', 'phi3-longrope', 'qwen2', 'qwen3', 'granite'],
    ...['ernie4_5', 'gpt_oss', 'hunyuan_v1_dense', 'nemotron', 'smollm3'],
  ]),
  { ...rows('builder', 'fp32', ['olmo'])[0]!, refusal: /OLMo by LayerNormalization/ },
  ...rows('builder', 'int4', ['llama', 'mistral', 'gemma2', 'phi3']),
  ...rows('builder', 'fp16-cuda', ['llama']),
  ...rows('builder', 'fp16-cpu', ['llama']),
];

/** Largest difference of two logits that rounding may reverse. */
const roundingOf = ({ precision }: Case): number => (precision.startsWith('fp16') ? 2e-2 : 1e-3);

const here = (file: string) => fileURLToPath(new URL(file, import.meta.url));

function run(command: string, ...args: readonly string[]): void {
  const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8', maxBuffer: 2 ** 28 });
  if (status === 0) return;
  const lastLine = stderr?.trim().split('\n').at(-1);
  throw new Error(`${command} failed: ${error?.message ?? lastLine ?? `exit code ${status}`}`);
}

/** Returns the interpreter that has an exporter. */
type Pythons = (name: Exporter) => string;

/** Creates an environment with the packages of requirements-NAME.txt and returns its Python. */
function install(folder: string, name: Exporter | 'own'): string {
  console.error(`installing the packages of requirements-${name}.txt`);
  const environment = join(folder, `python-${name}`);
  run('python3', '-m', 'venv', environment);
  const python = join(environment, 'bin', 'python');
  run(python, '-m', 'pip', 'install', '--quiet', '-r', here(`requirements-${name}.txt`));
  return python;
}

interface References {
  readonly directory: string;
  readonly transformers: string;
  /** Null for Optimum. */
  readonly graph: string | null;
}

/** Exports the model unless a previous run did; returns its directory and the references to compare with. */
function exported({ architecture, exporter, precision }: Case, models: string, python: Pythons): References {
  const script = here('export.py');
  const transformers = join(models, architecture, 'transformers.json');
  if (!existsSync(transformers)) run(python('optimum'), script, models, architecture, 'reference');
  const directory = join(models, architecture, `${exporter}-${precision}`);
  const graph = exporter === 'builder' ? join(directory, 'graph.json') : null;
  if (!existsSync(graph ?? directory))
    run(python(exporter), script, models, architecture, exporter, precision);
  return { directory, transformers, graph };
}

/** Quantized weights give other tokens than transformers. */
const isQuantized = ({ precision }: Case): boolean => precision === 'int4';

async function rowOf(one: Case, models: string, python: Pythons) {
  try {
    const { directory, transformers, graph } = exported(one, models, python);
    const compared = async (reference: string) => await compareTokens(directory, reference, roundingOf(one));
    const found = [
      isQuantized(one) ? null : await compared(transformers),
      graph === null ? null : await compared(graph),
    ];
    const done = found.filter((comparison) => comparison !== null);
    const wrong = [...new Set(done.flatMap((comparison) => comparison.wrong))];
    const inexact = [...new Set(done.flatMap((comparison) => comparison.inexact))];
    const near = done.map(({ prompts, equal }) => prompts - equal);
    const notes = [
      wrong.length > 0 ? `prompts of ${wrong.join(', ')} tokens differ` : rounded(Math.max(...near)),
      inexact.length > 0 ? `${inexact.join(' and ')} changes bits` : '',
    ];
    return {
      cells: [
        ...found.map(equalPrompts),
        `${done[0]!.context}`,
        notes.filter((note) => note !== '').join('; '),
      ],
      failed:
        wrong.length + inexact.length > 0 ||
        done.some(({ prompts }) => prompts === 0) ||
        one.refusal !== undefined,
    };
  } catch (error) {
    const reason = errorMessage(error);
    return { cells: ['-', '-', '-', reason], failed: one.refusal?.test(reason) !== true };
  }
}

const equalPrompts = (comparison: Comparison | null): string =>
  comparison === null ? '-' : `${comparison.equal} of ${comparison.prompts}`;

const rounded = (prompts: number): string => (prompts === 0 ? '' : `${prompts} within rounding`);

const { values } = parseArgs({
  options: {
    architecture: { type: 'string' },
    exporter: { type: 'string' },
    precision: { type: 'string' },
    'optimum-python': { type: 'string' },
    'builder-python': { type: 'string' },
    models: { type: 'string' },
    builder: { type: 'string' },
    'own-python': { type: 'string' },
    case: { type: 'string' },
    mutations: { type: 'string' },
  },
});
const folder = mkdtempSync(join(tmpdir(), 'continuo-exporters-'));
try {
  if (values.builder === 'own') {
    const python = values['own-python'] ?? install(folder, 'own');
    const models = values.models ?? folder;
    const passed = await checkFamilies(python, here('families.py'), models, values.case);
    const script = here('reference_server.py');
    const count = Number(values.mutations ?? (values.case === undefined ? 2000 : 0));
    const which = { count, only: values.case };
    const agreed = count === 0 || (await checkMutations(python, script, models, which));
    if (!passed || !agreed) process.exitCode = 1;
  } else await checkExporters();
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function checkExporters(): Promise<void> {
  const isWanted = ({ architecture, exporter, precision }: Case): boolean =>
    architecture === (values.architecture ?? architecture) &&
    exporter === (values.exporter ?? exporter) &&
    precision === (values.precision ?? precision);

  const wanted = CASES.filter(isWanted);
  if (wanted.length === 0) {
    console.error('no row matches; the rows are in test/tools/exporters/main.ts');
    process.exitCode = 1;
    return;
  }

  /** Installed when a row needs them. */
  const pythons: Record<Exporter, string | undefined> = {
    optimum: values['optimum-python'],
    builder: values['builder-python'],
  };
  const python: Pythons = (name) => {
    pythons[name] ??= install(folder, name);
    return pythons[name];
  };
  const table = new Table({
    head: ['architecture', 'exporter', 'precision', 'as transformers', 'as the graph', 'context', 'note'],
    style: { head: [], border: [] },
  });
  for (const one of wanted) {
    console.error(`${one.architecture} by ${one.exporter} in ${one.precision}`);
    const { cells, failed } = await rowOf(one, values.models ?? folder, python);
    table.push([one.architecture, one.exporter, one.precision, ...cells]);
    if (failed) process.exitCode = 1;
  }
  console.log(table.toString());
}
