import { hash } from 'node:crypto';
import { lstatSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { errorCode } from '@continuo/shared/error-details.ts';
import koffi, { type LibraryHandle } from 'koffi';
import { ONNX_RUNTIME_VERSION } from './cuda-folder.ts';

/** Finds and loads the native libraries. */

/** Stack of native calls. Large models need more than koffi's 128 KiB (async) and 2 MiB (sync). */
const STACK_BYTES = 8 << 20;
const NOW = 2;
/**
 * MADV_DONTNEED of sys/mman.h: private anonymous memory reads as zeros afterwards. Other systems keep the
 * pages.
 */
const DO_NOT_NEED = 4;
/** Keeps a library mapped; by platform, as in dlfcn.h. */
const NO_DELETE: Partial<Record<NodeJS.Platform, number>> = { linux: 0x1000, darwin: 0x80 };
const LIBRARY_NAMES: Partial<Record<NodeJS.Platform, string>> = {
  win32: 'onnxruntime.dll',
  darwin: `libonnxruntime.${ONNX_RUNTIME_VERSION}.dylib`,
};
const LINUX_LIBRARY = 'libonnxruntime.so.1';
/**
 * ONNX Runtime reports models and machine to Microsoft unless the first is set. The second replaces its tiled
 * attention on the CPU, which computes single rows without AVX. A decode run of 16 rows at position 300 then
 * takes 8 to 13 % less time, if the graph's scale of attention is 1.
 */
const VARIABLES = ['ORT_DISABLE_TELEMETRY', 'ORT_GQA_DISABLE_FLASH_ATTENTION'] as const;

/** @param file null = the libraries that the process has loaded already */
export function openLibrary(file: string | null): LibraryHandle {
  // Must happen before the process loads its first library.
  if ((koffi.config().sync_stack_size ?? 0) < STACK_BYTES) {
    koffi.config({ sync_stack_size: STACK_BYTES, async_stack_size: STACK_BYTES });
  }
  return koffi.load(file);
}

/**
 * Loads a library that stays mapped until the process ends. koffi unloads a library when its handle is
 * garbage-collected or its worker thread ends. The library's own threads may still run then, and would crash.
 */
export function loadPermanently(file: string): LibraryHandle {
  if (NO_DELETE[process.platform] !== undefined) mapPermanently(file);
  return openLibrary(file);
}

/** Maps a library permanently. Returns null, or the loader's error. Linux and macOS only. */
export function mapPermanently(file: string): string | null {
  const system = openLibrary(null);
  const open = system.func('dlopen', 'void *', ['const char *', 'int']);
  const lastError = system.func('dlerror', 'const char *', []);
  // `process.env` of a thread does not reach ONNX Runtime.
  const setIfAbsent = system.func('setenv', 'int', ['const char *', 'const char *', 'int']);
  for (const name of VARIABLES) setIfAbsent(name, '1', 0);
  const handle: bigint | null = open(file, NOW | (NO_DELETE[process.platform] ?? 0));
  return handle === null ? String(lastError()) : null;
}

/** Returns the path of ONNX Runtime's library, which looks for providers in its own folder. */
export function onnxRuntimeLibrary(cudaFolder: string | undefined): string {
  const bundled = bundledFolder();
  const name = LIBRARY_NAMES[process.platform] ?? LINUX_LIBRARY;
  return join(cudaFolder === undefined ? bundled : linkedFolder(bundled, cudaFolder), name);
}

/** Returns the folder where onnxruntime-node has the library and its installer puts the CUDA provider. */
export function bundledFolder(): string {
  const require = createRequire(import.meta.url);
  const { platform, arch } = process;
  return join(dirname(require.resolve('onnxruntime-node')), '../bin/napi-v6', platform, arch);
}

/**
 * Creates a folder with links to the bundled library and to the providers of another folder. The same folders
 * give the same links, so a process loads the library once.
 * @throws Error if another user could have written to that folder
 */
function linkedFolder(bundled: string, providers: string): string {
  const key = hash('sha256', `${bundled}\n${resolve(providers)}`).slice(0, 16);
  const folder = join(tmpdir(), `continuo-onnxruntime-${process.getuid?.() ?? 0}-${key}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const { uid, mode } = lstatSync(folder);
  if (uid !== process.getuid?.() || (mode & 0o022) !== 0)
    throw new Error(`${folder} belongs to another user`);
  link(join(bundled, LINUX_LIBRARY), join(folder, LINUX_LIBRARY));
  for (const name of readdirSync(providers)) {
    if (/^libonnxruntime_providers_\w+\.so$/.test(name)) link(resolve(providers, name), join(folder, name));
  }
  return folder;
}

function link(target: string, path: string): void {
  try {
    symlinkSync(target, path);
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
  }
}

/**
 * Returns an ordinary ArrayBuffer over shared memory: the same bytes, accepted by APIs that refuse shared
 * buffers. Threads must synchronize through the shared one before reading.
 */
export function ordinaryBuffer(memory: SharedArrayBuffer): ArrayBuffer {
  const buffer = koffi.view(koffi.address(new Uint8Array(memory)), memory.byteLength);
  // The view does not keep the memory alive.
  return Object.assign(buffer, { memory });
}

/** Returns a function that gives the kernel an advice (sys/mman.h) on the whole pages of a range. */
export function memoryAdvice(advice: number, page: bigint): (start: bigint, end: bigint) => void {
  const advise = openLibrary(null).func('madvise', 'int', ['void *', 'size_t', 'int']);
  return (start, end) => {
    const first = ((start + page - 1n) / page) * page;
    const bytes = (end / page) * page - first;
    if (bytes > 0n) advise(first, bytes, advice);
  };
}

/** Returns `releasePages` of OrtApi. */
export function pageRelease(): (memory: Uint8Array) => void {
  if (process.platform !== 'linux') return () => {};
  const page = openLibrary(null).func('getpagesize', 'int', [])();
  const release = memoryAdvice(DO_NOT_NEED, BigInt(page));
  return (memory) => {
    const address = koffi.address(memory);
    release(address, address + BigInt(memory.byteLength));
  };
}

/** Gives memory that native code has freed back to the system, because glibc would keep it. */
export function returnFreeMemory(): void {
  if (process.platform !== 'linux') return;
  try {
    openLibrary(null).func('malloc_trim', 'int', ['size_t'])(0);
  } catch {
    // Another C library.
  }
}
