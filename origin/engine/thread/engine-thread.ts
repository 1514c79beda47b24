import { availableParallelism } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { GrammarRuntime } from '@continuo/grammar/runtime/grammar-runtime.ts';
import { GrammarVocabulary } from '@continuo/grammar/runtime/grammar-vocabulary.ts';
import { PatternSet } from '@continuo/grammar/runtime/pattern-set.ts';
import { errorMessage } from '@continuo/shared/error-details.ts';
import { CompilerClient } from '../../compiler/compiler-client.ts';
import { GrammarCache } from '../../compiler/grammar-cache.ts';
import { ModelError } from '../../model/config/model-json.ts';
import { faultKind, type ModelRunner } from '../../model/model-runner.ts';
import { modelIdentity } from '../../model/open/model-identity.ts';
import { openModel } from '../../model/open/open-model.ts';
import type { ModelOptions } from '../../model/open/plan-model.ts';
import { ordinaryBuffer } from '../../model/ort/ort-library.ts';
import { OutOfMemoryError } from '../../model/runner/kv-cache.ts';
import { SimdKernel } from '../../sampling/kernel/simd-kernel.ts';
import { SamplerPool } from '../../sampling/pool/sampler-pool.ts';
import { isLargeVocabulary } from '../../sampling/row.ts';
import { firstTokens, type TokenBytes } from '../../tokenizer/token-bytes.ts';
import { type DiskTier, openDiskTier, type PrefixDisk } from '../kv/disk/disk-tier.ts';
import type { EngineReport, Submission } from '../messages.ts';
import { Engine } from '../runs/engine.ts';
import { maxEventsPerSecond } from '../runs/engine-options.ts';
import { serveEngine } from './engine-loop.ts';
import { ImageFeatures } from './image-features.ts';
import { samplerThreads } from './sampler-threads.ts';

/** Entry of the engine thread: opens the model, then runs the engine until the `stop` command. */

/** The thread's workerData. */
export interface EngineThreadData {
  readonly model: ModelOptions;
  readonly tokenBytes: TokenBytes;
  /** The model's end tokens. */
  readonly eosIds: readonly number[];
  /** Requests that may wait for a slot. */
  readonly maxWaiting: number;
  /** Default: one half. */
  readonly promptShare?: number;
  /** Memory of the prefix store; default 0 = none. */
  readonly prefixStoreBytes?: number;
  /** The second tier of the prefix store; null or absent = none. */
  readonly prefixDisk?: PrefixDisk | null;
}

/** Returns null, with a warning, if the disk cannot be used: requests are then only slower. */
async function openPrefixDisk(runner: ModelRunner, deviceName: string): Promise<DiskTier | null> {
  if (!prefixDisk) return null;
  const warn = (message: string) => report({ type: 'warning', message: `prefix cache on disk: ${message}` });
  if (prefixStoreBytes <= 0) {
    warn('not used, because this model keeps no prefixes in main memory');
    return null;
  }
  if (runner.states) {
    warn('not used, because its files have no states of slots, which this model needs');
    return null;
  }
  try {
    const identity = await modelIdentity(model, runner, deviceName);
    return await openDiskTier(prefixDisk, identity, runner.shape, runner.kvBytes, warn);
  } catch (error) {
    warn(`not used: ${errorMessage(error)}`);
    return null;
  }
}

const port = parentPort;
if (port === null) throw new Error('engine-thread.ts is the entry of a worker thread');
const {
  model,
  tokenBytes,
  eosIds,
  maxWaiting,
  promptShare,
  prefixStoreBytes = 0,
  prefixDisk,
} = workerData as EngineThreadData;
const report = (message: EngineReport): void => port.postMessage(message);

// Started before the model is opened, because forking a small process is faster.
const compiler = new CompilerClient();

try {
  const cores = availableParallelism();
  // The model's threads soon sleep while tokens are sampled.
  const threads = samplerThreads(Math.min(model.threads, cores));
  const kernel = new SimdKernel(threads?.threads, ordinaryBuffer);
  const { runner, images, shape, deviceName, summary, warning } = await openModel(model, (length) =>
    kernel.allocate(length),
  );
  const { slots, contextLength, vocabularySize } = shape;
  // Built before the first constraint arrives, because a large vocabulary would delay running streams.
  const grammarVocabulary = new GrammarVocabulary(firstTokens(tokenBytes, vocabularySize));
  const compile = (wire: string, tenantId: string) => compiler.compile(wire, tenantId);
  const grammars = new GrammarCache((program) => new GrammarRuntime(program, grammarVocabulary), compile);
  const patterns = new GrammarCache((program) => new PatternSet(program), compile);
  const features = new ImageFeatures(async (pixels, signal) => {
    if (images === null) throw new Error('this model takes no images');
    return await images.encode(pixels, signal);
  });
  // Rows of small vocabularies are sampled faster than other threads wake.
  const usesPool = threads !== null && isLargeVocabulary(vocabularySize);
  const sparseRows = runner.sparse?.logits.rows ?? 0;
  const pool = usesPool ? new SamplerPool(kernel, vocabularySize, threads, sparseRows) : null;
  const disk = await openPrefixDisk(runner, deviceName);
  const imagePositions = images?.positions ?? null;
  const onGpu = deviceName !== 'cpu';
  report({ type: 'ready', slots, contextLength, vocabularySize, imagePositions, onGpu, summary, warning });
  const options = {
    runner,
    kernel,
    pool,
    eosIds,
    maxWaiting,
    promptShare,
    prefixStoreBytes,
    disk,
    tokenBytes,
    compile: (constraint: string, tenantId: string) => grammars.get(constraint, tenantId),
    compilePatterns: (list: string, tenantId: string) => patterns.get(list, tenantId),
    encodeImages: (submission: Submission, signal: AbortSignal) => features.of(submission, signal),
    now: () => performance.now(),
    unixNow: () => Date.now(),
    maxEventsPerSecond: maxEventsPerSecond(cores, onGpu),
  };
  let deviceLost = false;
  try {
    await serveEngine(port, (hooks) => new Engine({ ...options, ...hooks }));
  } catch (error) {
    deviceLost = faultKind(error) === 'device-lost';
    if (!deviceLost) throw error;
    const next = 'check it (nvidia-smi lists the cards), then start the origin again';
    throw new Error(`${deviceName} is lost to this process: ${errorMessage(error)}; ${next}`, {
      cause: error,
    });
  } finally {
    // Native code that frees memory of a lost device may hang or abort the process before the streams have
    // ended.
    if (!deviceLost) runner.dispose();
    images?.dispose();
  }
} catch (error) {
  const message = errorMessage(error);
  // A lack of memory may be temporary.
  const kind = error instanceof OutOfMemoryError ? 'out-of-memory' : faultKind(error);
  const permanent = error instanceof ModelError && kind === 'other';
  report({ type: 'failed', message, permanent, deviceLost: kind === 'device-lost' });
} finally {
  await compiler.close();
}
port.close();
