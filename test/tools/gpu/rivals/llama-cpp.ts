import { execFile, execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { cudaFolder } from '../../../../origin/model/ort/cuda-folder.ts';
import { compiledLibrary } from '../luggage/fat-binary.ts';
import { type Package, unpackPackage } from './packages.ts';
import { writeRandomGguf } from './random-gguf.ts';
import { type Rival, SERVED_NAME } from './rival.ts';

/**
 * llama.cpp's own server, with the libraries of a public package. That package has no server, so it is built
 * here from the sources of the same release, which another package holds as a git bundle.
 */

const PACKAGES = {
  libraries: {
    registry: 'npm',
    name: '@node-llama-cpp/linux-x64-cuda',
    version: '3.22.1',
    sha256: 'd6cd3ff39a43b024816952e0bc6452d6711608d26256ff6eb0fe8cf7ff55bb2c',
  },
  sources: {
    registry: 'npm',
    name: 'node-llama-cpp',
    version: '3.22.1',
    sha256: 'a0d9dd80eacd2ab1cfe71aee57ac8a806487fd70b3d2a38fbec637752d9e5c5f',
  },
  // Of CUDA 13.1, as the library is: drivers of CUDA 13.0 run its machine code, but refuse its PTX.
  compiler: {
    registry: 'pypi',
    name: 'nvidia-cuda-nvcc',
    version: '13.1.80',
    sha256: '3bc4a530566f7083da0cfe9f637474efa173a1101ed0bc72da9a98f8a55edb77',
  },
} as const satisfies Record<string, Package>;

const LIBRARIES = 'package/bins/linux-x64-cuda';
const BUNDLE = 'package/llama/gitRelease.bundle';
const TOOLS = 'nvidia/cu13/bin';
const CUDA_BACKEND = 'libggml-cuda.so';
const SERVER = 'llama-server';

/** Of the machine that packs. */
const PROGRAMS = ['git', 'cmake', 'c++', 'npm', 'python3'];

const PROJECT = fileURLToPath(new URL('./llama-server', import.meta.url));

export const llamaCpp: Rival = {
  assemble: async (directory, architecture) => {
    requirePrograms();
    const made = path.join(tmpdir(), 'continuo-rivals', `llama-cpp-${PACKAGES.sources.version}`);
    mkdirSync(made, { recursive: true });
    const unpacked = (name: keyof typeof PACKAGES) => {
      const folder = path.join(made, name);
      if (!existsSync(folder)) unpackPackage(PACKAGES[name], folder);
      return folder;
    };
    const libraries = path.join(unpacked('libraries'), LIBRARIES);
    const server = buildServer(path.join(unpacked('sources'), BUNDLE), libraries, made);
    const needed = globSync('*.so', { cwd: libraries }).filter((name) => name !== CUDA_BACKEND);
    for (const file of [server, ...needed.map((name) => path.join(libraries, name))])
      copyFileSync(file, path.join(directory, path.basename(file)));
    // Apart, because the server says why it cannot load a backend only if the environment names it.
    mkdirSync(path.join(directory, 'cuda'));
    const compile = compilerOf(path.join(unpacked('compiler'), TOOLS), made, architecture);
    const backend = await compiledLibrary(path.join(libraries, CUDA_BACKEND), architecture, compile);
    writeFileSync(path.join(directory, 'cuda', CUDA_BACKEND), backend);
  },
  server: ({ files, directory, contextLength, streams }, port) => ({
    program: path.join(files, SERVER),
    args: [
      ...['--model', ggufOf(directory), '--alias', SERVED_NAME, '--host', '127.0.0.1', '--port', `${port}`],
      ...['--parallel', `${streams}`, '--ctx-size', `${streams * contextLength}`, '--cont-batching'],
      ...['--gpu-layers', '99', '--fit', 'off', '--flash-attn', 'on', '--cache-ram', '0'],
    ],
    environment: {
      LD_LIBRARY_PATH: [files, cudaFolder(process.env), process.env.LD_LIBRARY_PATH]
        .filter(Boolean)
        .join(':'),
      GGML_BACKEND_PATH: path.join(files, 'cuda', CUDA_BACKEND),
      // The server must not run on processors unseen; a rehearsal asks for that.
      LLAMA_ARG_DEVICE: process.env.LLAMA_ARG_DEVICE ?? 'CUDA0',
    },
  }),
  reconnects: true,
  notable: /backend|flash_attn|n_slots|buffer size|CUDA/,
};

/** @throws Error that names the programs that this machine lacks */
function requirePrograms(): void {
  const folders = (process.env.PATH ?? '').split(path.delimiter);
  const absent = PROGRAMS.filter((name) => !folders.some((folder) => existsSync(path.join(folder, name))));
  if (absent.length > 0)
    throw new Error(`llama.cpp's server is built here, which needs ${absent.join(', ')}: install them.`);
}

/** Returns the server's file. A build that was interrupted goes on. */
function buildServer(bundle: string, libraries: string, made: string): string {
  const [sources, build] = [path.join(made, 'llama.cpp'), path.join(made, 'build')];
  const run = (program: string, ...args: readonly string[]) =>
    execFileSync(program, args, { stdio: ['ignore', 'inherit', 'inherit'] });
  if (!existsSync(sources)) {
    rmSync(`${sources}.new`, { recursive: true, force: true });
    run('git', 'clone', '--quiet', bundle, `${sources}.new`);
    renameSync(`${sources}.new`, sources);
  }
  const options = { CMAKE_BUILD_TYPE: 'Release', SOURCES: sources, LIBRARIES: libraries };
  const given = Object.entries(options).map(([name, value]) => `-D${name}=${value}`);
  run('cmake', '-S', PROJECT, '-B', build, ...given);
  run('cmake', '--build', build, '--target', SERVER, '--parallel', `${availableParallelism()}`);
  return path.join(build, 'tools/server', SERVER);
}

const run = promisify(execFile);

/** Returns a function that compiles PTX to a fat binary, and keeps it for the next luggage. */
function compilerOf(tools: string, made: string, architecture: number) {
  const folder = path.join(made, `sm_${architecture}`);
  mkdirSync(folder, { recursive: true });
  const tool = (name: string) => {
    const program = path.join(tools, name);
    chmodSync(program, 0o755);
    return program;
  };
  const [ptxas, fatbinary] = [tool('ptxas'), tool('fatbinary')];
  return async (ptx: Buffer, index: number): Promise<Buffer> => {
    const file = path.join(folder, `${index}`);
    if (existsSync(file)) return readFileSync(file);
    const at = (ending: string) => `${file}.${ending}`;
    writeFileSync(at('ptx'), ptx);
    await run(ptxas, [`-arch=sm_${architecture}`, at('ptx'), '-o', at('cubin')]);
    const image = `--image3=kind=elf,sm=${architecture},file=${at('cubin')}`;
    await run(fatbinary, ['-64', '--compress-all', `--create=${at('new')}`, image]);
    renameSync(at('new'), file);
    for (const ending of ['ptx', 'cubin']) rmSync(at(ending));
    return readFileSync(file);
  };
}

/** Returns the file of a random model with the sizes of the one in a directory. Writes it on first use. */
function ggufOf(directory: string): string {
  const folder = path.join(tmpdir(), 'continuo-bench-models');
  const file = path.join(folder, `${path.basename(directory)}.gguf`);
  if (existsSync(file)) return file;
  mkdirSync(folder, { recursive: true });
  writeRandomGguf(`${file}.new`, directory);
  renameSync(`${file}.new`, file);
  return file;
}
