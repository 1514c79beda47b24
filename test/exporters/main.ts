import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import Table from 'cli-table3';
import { errorMessage } from '../../shared/error-details.ts';
import { compareTokens } from './compare.ts';

/**
 * `npm run test:exporters`: exports small random models with Optimum and onnxruntime-genai's builder, and compares greedy
 * tokens with transformers or, for the builder, with ONNX Runtime's own run of the exported graph. Needs Python 3.11 and
 * installs the exporters into a temporary folder (about 6 GB). Existing environments and models can be used instead:
 * `-- --optimum-python PATH --builder-python PATH --models FOLDER`. Exits with code 1 if a model differs or does not start.
 */

type Exporter = 'optimum' | 'builder';
type ExportedPrecision = 'fp32' | 'fp16' | 'int4';

interface Case {
  readonly architecture: string;
  readonly exporter: Exporter;
  readonly precision: ExportedPrecision;
}

const optimum = (architecture: string, precision: ExportedPrecision = 'fp32'): Case => ({
  architecture,
  exporter: 'optimum',
  precision,
});
const builder = (architecture: string, ...precisions: readonly ExportedPrecision[]): Case[] =>
  precisions.map((precision) => ({ architecture, exporter: 'builder', precision }));

const CASES: readonly Case[] = [
  ...['llama', 'mistral', 'gemma3_text', 'gpt_neo', 'bloom', 'falcon', 'mpt', 'gpt_bigcode', 'codegen'].map(
    (architecture) => optimum(architecture),
  ),
  ...['gpt2', 'gpt_neox', 'gptj', 'opt', 'phi', 'qwen2', 'qwen3', 'gemma', 'gemma2', 'granite', 'olmo'].map(
    (architecture) => optimum(architecture),
  ),
  optimum('llama', 'fp16'),
  ...builder('llama', 'fp32', 'int4', 'fp16'),
  ...builder('mistral', 'fp32', 'int4'),
  ...builder('gemma2', 'fp32', 'int4'),
  ...builder('phi3', 'fp32', 'int4'),
  ...builder('qwen2', 'fp32'),
  ...builder('qwen3', 'fp32'),
  ...builder('phi', 'fp32'),
  ...builder('gemma', 'fp32'),
  ...builder('granite', 'fp32'),
  ...builder('olmo', 'fp32'),
];

/** Largest difference of two logits that rounding may reverse. */
const ROUNDING: Readonly<Record<ExportedPrecision, number>> = { fp32: 1e-3, fp16: 2e-2, int4: 1e-3 };

const here = (file: string) => fileURLToPath(new URL(file, import.meta.url));

function run(command: string, ...args: readonly string[]): void {
  const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8', maxBuffer: 2 ** 28 });
  if (status === 0) return;
  const lastLine = stderr?.trim().split('\n').at(-1);
  throw new Error(`${command} failed: ${error?.message ?? lastLine ?? `exit code ${status}`}`);
}

/** Creates an environment with the packages of requirements-NAME.txt and returns its Python. */
function install(folder: string, name: Exporter): string {
  const environment = join(folder, `python-${name}`);
  run('python3', '-m', 'venv', environment);
  const python = join(environment, 'bin', 'python');
  run(python, '-m', 'pip', 'install', '--quiet', '-r', here(`requirements-${name}.txt`));
  return python;
}

/** Exports the model unless a previous run did; returns its directory and the reference to compare with. */
function exported(
  { architecture, exporter, precision }: Case,
  models: string,
  pythons: Record<Exporter, string>,
) {
  const script = here('export.py');
  const reference = join(models, architecture, 'transformers.json');
  if (!existsSync(reference)) run(pythons.optimum, script, models, architecture, 'reference');
  const directory = join(models, architecture, `${exporter}-${precision}`);
  const graph = join(directory, 'graph.json');
  const isDone = exporter === 'builder' ? existsSync(graph) : existsSync(directory);
  if (!isDone) run(pythons[exporter], script, models, architecture, exporter, precision);
  return { directory, reference: exporter === 'builder' ? graph : reference };
}

async function rowOf(one: Case, models: string, pythons: Record<Exporter, string>) {
  try {
    const { directory, reference } = exported(one, models, pythons);
    const { equal, prompts, wrong, context } = await compareTokens(
      directory,
      reference,
      ROUNDING[one.precision],
    );
    const note = wrong.length > 0 ? `prompts of ${wrong.join(', ')} tokens differ` : rounded(prompts - equal);
    return {
      cells: [`${equal} of ${prompts}`, `${context}`, note],
      failed: wrong.length > 0 || prompts === 0,
    };
  } catch (error) {
    return { cells: ['-', '-', errorMessage(error)], failed: true };
  }
}

const rounded = (prompts: number): string => (prompts === 0 ? '' : `${prompts} within rounding`);

const { values } = parseArgs({
  options: {
    'optimum-python': { type: 'string' },
    'builder-python': { type: 'string' },
    models: { type: 'string' },
  },
});
const folder = mkdtempSync(join(tmpdir(), 'continuo-exporters-'));
try {
  const pythons = {
    optimum: values['optimum-python'] ?? install(folder, 'optimum'),
    builder: values['builder-python'] ?? install(folder, 'builder'),
  };
  const table = new Table({
    head: ['architecture', 'exporter', 'precision', 'equal prompts', 'context', 'note'],
    style: { head: [], border: [] },
  });
  for (const one of CASES) {
    const { cells, failed } = await rowOf(one, values.models ?? folder, pythons);
    table.push([one.architecture, one.exporter, one.precision, ...cells]);
    if (failed) process.exitCode = 1;
  }
  console.log(table.toString());
} finally {
  rmSync(folder, { recursive: true, force: true });
}
