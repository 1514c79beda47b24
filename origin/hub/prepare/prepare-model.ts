import { hash } from 'node:crypto';
import { existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import path from 'node:path';
import { type BuildProgress, type BuiltModel, buildModel, PARTIAL_SUFFIX } from '@continuo/export/build.ts';
import { readConfig } from '@continuo/export/checkpoint/safetensors.ts';
import { describeFamily } from '@continuo/export/families/families.ts';
import { type BlockSize, DEFAULT_BLOCK_SIZE, type WeightPrecision } from '@continuo/export/graph/linear.ts';
import { openCheckpoint } from '@continuo/export/open-checkpoint.ts';
import type { DeviceSettings } from '../../model/config/device.ts';
import { textsOf } from '../../model/config/model-directory.ts';
import { BUILT_PRECISIONS, filesOf, type Precision } from '../../model/config/model-files.ts';
import { readProvenance } from '../../model/config/provenance.ts';
import type { FileProgress } from '../../terminal/progress.ts';
import { Tokenizer } from '../../tokenizer/tokenizer.ts';
import { withFileLock } from '../fetch/file-lock.ts';
import { HubError, withDiskErrors } from '../fetch/hub-error.ts';
import { locate, TOKENIZER_FILE } from '../fetch/locate.ts';
import { DEFAULT_REVISION, nameOrOption, type RepositoryName, readModelName } from '../fetch/names.ts';
import type { PullContext } from '../fetch/pull.ts';
import { builtBytesOf, requireResources } from '../fetch/resources.ts';
import { chooseVariant, variantsOf } from '../fetch/variants.ts';
import { calibrateKv } from './calibrate-kv.ts';

/** Brings a model from its name to a directory that the origin can serve: fetches, builds. */

export interface PrepareRequest {
  /** A directory, a .gguf file, or what `readRepositoryName` takes. */
  readonly name: string;
  /** Branch, tag or commit of a repository, if its name does not say it. */
  readonly revision: string;
  /** Of the weights, if a graph is built and the name does not say it. */
  readonly precision: WeightPrecision;
  /** Values that share a scale, at most. */
  readonly blockSize: BlockSize;
  /** Computes a sample text to find the scales of a KV cache in int8; absent = KV as the precision says. */
  readonly quantizedKv?: DeviceSettings | undefined;
  /** Directory of a LoRA adapter to merge into the weights. */
  readonly adapter?: string | undefined;
  /** Directory to build; absent: one in `builds`, named after the source. */
  readonly out?: string | undefined;
}

export interface PrepareContext extends PullContext {
  /** The directory of built models. */
  readonly builds: string;
  /** Bytes of memory that a process can still take. */
  readonly availableMemory: () => number;
}

export interface PreparedModel {
  /** The published name, or the name of the directory or file. */
  readonly id: string;
  readonly directory: string;
  /** The graph to load, if the directory may hold several. */
  readonly variant: Precision | null;
  /** Null if nothing had to be built. */
  readonly built: BuiltModel | null;
}

/** Returns the precision of a graph that is built by the name that users give it; undefined if it is none. */
export function weightPrecision(name: string): WeightPrecision | undefined {
  const precision = BUILT_PRECISIONS.find((each) => each === name);
  return precision?.replace(/^q/, 'int') as WeightPrecision | undefined;
}

/** Part of the names of built directories. Raise it when the builder writes other graphs. */
const BUILDER_VERSION = 8;

/** In the directory of built models. One build runs at a time. */
const LOCK_FILE = '.lock';

/** Weights on this machine, or in a repository that is not fetched yet. */
interface Source {
  readonly id: string;
  /** What callers see as the origin of the weights; absent = the name of the directory or file. */
  readonly published?: string;
  /** Differs for every content. */
  readonly key: string;
  readonly isGguf: boolean;
  readonly bytes: number;
  /** Bytes to download. */
  readonly missingBytes: number;
  /** Fetches the weights. Returns their directory or .gguf file. */
  readonly fetch: () => Promise<string>;
}

/** @throws HubError, ModelError */
export async function prepareModel(request: PrepareRequest, context: PrepareContext): Promise<PreparedModel> {
  const name = readModelName(request.name, context.client.endpoint);
  if (name.kind === 'repository') return await prepareRepository(name, request, context);
  const id = path.basename(name.path).replace(/\.gguf$/i, '');
  if (name.kind === 'directory' && hasGraph(name.path)) {
    refuseBuildOptions(request);
    return { id, directory: name.path, variant: null, built: null };
  }
  if (name.kind === 'directory') {
    requireWeights(name.path);
    requireTokenizer(name.path, existsSync(path.join(name.path, TOKENIZER_FILE)));
  }
  const files = name.kind === 'directory' ? filesOf(name.path) : [fileOf(name.path)];
  const bytes = files.reduce((sum, [, size]) => sum + size, 0);
  const key = `${id}-${digest([name.path, files])}`;
  const fetch = async () => {
    if (name.kind === 'directory') requireKnown(name.path);
    return name.path;
  };
  return await build(
    { id, key, isGguf: name.kind === 'gguf', bytes, missingBytes: 0, fetch },
    request,
    context,
  );
}

/** A graph is served as it is. @throws HubError */
function refuseBuildOptions({ name, adapter, out, quantizedKv }: PrepareRequest): void {
  const given = { '--adapter': adapter, '--kv': quantizedKv, '--out': out };
  const [option] = Object.entries(given).find(([, value]) => value !== undefined) ?? [];
  if (option === undefined) return;
  throw new HubError(`${name} has a graph, which is served as it is; ${option} needs safetensors or GGUF`);
}

/** A directory may hold GGUF files of several models, so its user names one. @throws HubError */
function requireWeights(directory: string): void {
  const { format, files } = chooseVariant(pathsIn(directory), directory);
  if (format === 'safetensors') return;
  throw new HubError(
    `${directory} has no safetensors, but GGUF files: serve ${path.join(directory, files[0]!)}`,
  );
}

/** @throws HubError */
function requireTokenizer(source: string, hasTokenizer: boolean): void {
  if (hasTokenizer) return;
  throw new HubError(
    `${source} has no ${TOKENIZER_FILE}; where you trust it, AutoTokenizer.from_pretrained(…).save_pretrained(…) of transformers writes one`,
  );
}

/**
 * Checks the JSON files of weights: a build, and a download before it, can take hours.
 * @throws Error with one line
 */
function requireKnown(directory: string): void {
  describeFamily(readConfig(directory), new Set());
  Tokenizer.of(textsOf(directory));
}

async function prepareRepository(
  { repository, variant, revision: named }: RepositoryName,
  request: PrepareRequest,
  context: PrepareContext,
): Promise<PreparedModel> {
  const wanted = variant?.toLowerCase() ?? '';
  // This is the name of a type of GGUF files.
  const precision = wanted === 'bf16' ? undefined : weightPrecision(wanted);
  const revision = nameOrOption('revision', named, request.revision, DEFAULT_REVISION);
  const located = await locate({ repository, revision, variant, precision }, context);
  const { format, commit, bytes, missingBytes } = located;
  if (format === 'onnx') {
    refuseBuildOptions(request);
    requireResources(
      { missingBytes, builtBytes: 0, loadedBytes: bytes },
      { ...context, target: context.builds },
    );
    return { id: repository, directory: await located.fetch(), variant: located.precision, built: null };
  }
  const isGguf = format === 'gguf';
  if (!isGguf) requireTokenizer(repository, located.hasTokenizer);
  const part = isGguf ? `-${located.variant}` : '';
  const key = `${repository.replace('/', '--')}-${commit.slice(0, 12)}${part}`;
  const published = `${repository}@${commit.slice(0, 12)}${isGguf ? ` ${located.variant}` : ''}`;
  const fetch = () => located.fetch(isGguf ? undefined : requireKnown);
  const source = { id: repository, published, key, isGguf, bytes, missingBytes, fetch };
  return await build(source, { ...request, precision: precision ?? request.precision }, context);
}

async function build(
  source: Source,
  { precision, blockSize, quantizedKv, adapter, out }: PrepareRequest,
  context: PrepareContext,
): Promise<PreparedModel> {
  const { id, isGguf, bytes, missingBytes } = source;
  if (adapter !== undefined && !statSync(adapter, { throwIfNoEntry: false })?.isDirectory()) {
    throw new HubError(
      `--adapter ${adapter} is not a directory; download the adapter and name its directory`,
    );
  }
  const merged = adapter === undefined ? '' : `-${digest(filesOf(adapter))}`;
  const blocks = blockSize === DEFAULT_BLOCK_SIZE ? '' : `b${blockSize}`;
  const kv = quantizedKv === undefined ? '' : '-kv8';
  const name = `${source.key}-${precision}${blocks}${kv}${merged}-${BUILDER_VERSION}`;
  const directory = path.resolve(out ?? path.join(context.builds, name));
  const existing: PreparedModel = { id, directory, variant: null, built: null };
  if (holdsBuild(directory, name)) return existing;
  const builtBytes = builtBytesOf(bytes, isGguf ? 'gguf' : precision);
  requireResources(
    { missingBytes, builtBytes, loadedBytes: builtBytes },
    { ...context, target: path.dirname(directory) },
  );
  const weights = await source.fetch();
  const onWait = () => context.progress.note('waiting for another build');
  const { sleep } = context.client.retries;
  return await withFileLock(path.join(context.builds, LOCK_FILE), { onWait, sleep }, async () => {
    if (holdsBuild(directory, name)) return existing;
    removePartialBuilds(context.builds);
    const checkpoint = await openCheckpoint(weights, adapter);
    let display: FileProgress | undefined;
    const onProgress = ({ writtenBytes, totalBytes }: BuildProgress) => {
      display ??= context.progress.start(`build ${id} ${precision}`, totalBytes);
      display.update(writtenBytes);
    };
    try {
      const options = {
        precision,
        blockSize,
        directory,
        id,
        source: source.published,
        build: name,
        finish: quantizedKv && ((built: string) => calibrateKv(built, quantizedKv)),
        onProgress,
      };
      const built = await withDiskErrors(directory, () => buildModel(checkpoint, options));
      return { ...existing, built };
    } finally {
      display?.stop();
      await checkpoint.close();
    }
  });
}

/** Interrupted builds. The caller holds the lock, so no build is in progress. */
function removePartialBuilds(builds: string): void {
  for (const name of readdirSync(builds).filter((name) => name.endsWith(PARTIAL_SUFFIX))) {
    rmSync(path.join(builds, name), { recursive: true });
  }
}

/** Returns false if there is no such directory. @throws HubError if it holds anything else */
function holdsBuild(directory: string, build: string): boolean {
  if (!existsSync(directory)) return false;
  const provenance = readProvenance(textsOf(directory));
  if (provenance?.build === build) return true;
  const content =
    provenance === null
      ? 'is no built model'
      : `holds ${provenance.id} in ${provenance.precision}, built from other files`;
  throw new HubError(`${directory} ${content}; remove it or name another directory`);
}

/** Returns whether the origin can load a directory as it is. Weights beside a graph are not needed. */
const hasGraph = (directory: string): boolean =>
  variantsOf(pathsIn(directory)).some(({ format }) => format === 'onnx');

const pathsIn = (directory: string): string[] =>
  filesOf(directory).map(([file]) => file.replaceAll(path.sep, '/'));

function fileOf(file: string): readonly [string, number, number] {
  const { size, mtimeMs } = statSync(file);
  return [file, size, mtimeMs];
}

/** A short name of some files by their names, sizes and times. */
const digest = (value: unknown): string => hash('sha256', JSON.stringify(value)).slice(0, 12);
