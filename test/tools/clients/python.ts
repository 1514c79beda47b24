import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

/** Prepares the environment of the Python clients and runs them. */

const run = promisify(execFile);
const REQUIREMENTS = path.join(import.meta.dirname, 'requirements.txt');
/** Packages whose dependencies are not installed: vLLM's are several gigabytes, for a GPU. */
const ALONE = path.join(import.meta.dirname, 'requirements-alone.txt');

/** Returns the last line of a failed command's output, where pip and Python name the cause. */
function cause(error: unknown): string {
  const { stderr = '', message = '' } = error as { stderr?: string; message?: string };
  return (stderr.trim() || message).split('\n').at(-1) ?? '';
}

/**
 * Returns the interpreter of a virtual environment with the pinned packages, and creates it in the temporary
 * directory if necessary. TEST_CLIENTS_PYTHON names an interpreter that already has them.
 */
export async function preparePython(): Promise<{ python: string } | { missing: string }> {
  const given = process.env.TEST_CLIENTS_PYTHON;
  if (given) return { python: given };
  const hash = createHash('sha256').update(readFileSync(REQUIREMENTS)).update(readFileSync(ALONE));
  const wanted = hash.digest('hex').slice(0, 12);
  const directory = path.join(tmpdir(), `continuo-clients-${wanted}`);
  const python = path.join(directory, 'bin', 'python');
  const complete = path.join(directory, 'complete');
  if (existsSync(complete)) return { python };
  rmSync(directory, { recursive: true, force: true });
  try {
    await run('python3', ['-m', 'venv', directory]);
  } catch (error) {
    return { missing: `no Python 3 with venv here (${cause(error)})` };
  }
  console.log('Installing the Python clients; this takes some minutes, once.');
  try {
    await install(python, '-r', REQUIREMENTS);
  } catch (error) {
    rmSync(directory, { recursive: true, force: true });
    return { missing: `the packages of requirements.txt cannot be installed (${cause(error)})` };
  }
  // vLLM has packages for Linux only.
  await install(python, '--no-deps', '--only-binary', ':all:', '-r', ALONE).catch((error: unknown) =>
    console.log(`vLLM's classes are skipped: ${cause(error)}`),
  );
  writeFileSync(complete, '');
  return { python };
}

async function install(python: string, ...packages: readonly string[]): Promise<void> {
  const command = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...packages];
  await run(python, command, { maxBuffer: 1 << 26 });
}

/** Returns true if the interpreter has the package. Does not import it. */
export async function hasPackage(python: string, name: string): Promise<boolean> {
  const code = `import importlib.util; print(importlib.util.find_spec('${name}') is not None)`;
  return (await run(python, ['-c', code])).stdout.trim() === 'True';
}

/** Environment of a Python process: an empty home, only the test system, no user settings. */
function environment(home: string): Record<string, string> {
  return {
    PATH: process.env.PATH ?? '',
    HOME: home,
    HF_HOME: path.join(home, 'huggingface'),
    HF_HUB_OFFLINE: '1',
    HF_DATASETS_OFFLINE: '1',
    LITELLM_LOCAL_MODEL_COST_MAP: 'True',
    LANGSMITH_TRACING: 'false',
    LLM_USER_PATH: path.join(home, 'llm'),
    PYTHONUTF8: '1',
  };
}

/**
 * Runs Python with `args` in an empty home directory and removes it.
 * @param use gets standard output and the home directory before the removal
 * @throws Error with the output if the exit code is not 0
 */
export async function runPython<T>(
  python: string,
  args: readonly string[],
  options: { readonly cwd?: string; readonly env?: Readonly<Record<string, string>> },
  use: (stdout: string, home: string) => T,
): Promise<T> {
  const home = mkdtempSync(path.join(tmpdir(), 'continuo-python-'));
  try {
    const process = run(
      python,
      args.map((arg) => arg.replaceAll('{home}', home)),
      {
        cwd: options.cwd ?? home,
        env: { ...environment(home), ...options.env },
        maxBuffer: 1 << 26,
        timeout: 170_000,
      },
    );
    // Some clients read standard input to its end if it is not a terminal.
    process.child.stdin?.end();
    const { stdout } = await process;
    return use(stdout, home);
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    if (stdout === '' && stderr === '') throw error;
    throw new Error(`${args.join(' ')}\n${stdout}\n${stderr}`, { cause: error });
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/** Runs python/`name` and parses the last line of its output as JSON. */
export function runScript<T>(
  python: string,
  name: string,
  served: { readonly url: string; readonly apiKey: string },
  more: Readonly<Record<string, string>> = {},
): Promise<T> {
  const script = path.join(import.meta.dirname, 'python', name);
  const env = { CONTINUO_URL: `${served.url}/v1`, CONTINUO_API_KEY: served.apiKey, ...more };
  return runPython(
    python,
    [script],
    { env },
    (stdout) => JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as T,
  );
}
