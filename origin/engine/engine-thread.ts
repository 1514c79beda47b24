import { availableParallelism } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { messageOf } from '../../shared/message-of.ts';
import { CompilerClient } from '../grammar/process/compiler-client.ts';
import { GrammarCache } from '../grammar/process/grammar-cache.ts';
import { GrammarVocabulary } from '../grammar/runtime/grammar-vocabulary.ts';
import { ModelError } from '../model/config/model-json.ts';
import { type ModelOptions, openModel } from '../model/open/open-model.ts';
import { OutOfMemoryError } from '../model/runner/kv-cache.ts';
import { isLargeVocabulary, SimdKernel } from '../sampling/simd/simd-kernel.ts';
import { DrawTeam } from '../sampling/team/draw-team.ts';
import { firstTokens, type TokenBytes } from '../tokenizer/token-bytes.ts';
import { Engine } from './engine.ts';
import { serveEngine } from './engine-loop.ts';
import { drawersBeside } from './engine-thread-drawers.ts';
import { ImageFeatures } from './image-features.ts';
import type { EngineReport, Submission } from './messages.ts';
import { samplerVocabulary } from './sampler-vocabulary.ts';
import type { SpeculationSettings } from './speculation.ts';

/** Entry of the engine thread: opens the model, then runs the engine until it is told to stop. */

/** What the thread is started with. */
export interface EngineThreadData {
  readonly model: ModelOptions;
  readonly tokenBytes: TokenBytes;
  /** Tokens that end a text. */
  readonly eosIds: readonly number[];
  /** Sequences that may wait for a slot. */
  readonly maxWaiting: number;
  /** None unless given. */
  readonly speculation?: SpeculationSettings | undefined;
}

const port = parentPort;
if (port === null) throw new Error('engine-thread.ts is the entry of a worker thread');
const { model, tokenBytes, eosIds, maxWaiting, speculation } = workerData as EngineThreadData;
const report = (message: EngineReport): void => port.postMessage(message);

// Before the model is opened: the smaller this process is, the faster it starts another.
const compiler = new CompilerClient();

try {
  const cores = availableParallelism();
  // The model's own threads sleep while tokens are drawn.
  const drawers = drawersBeside(Math.min(model.threads, cores));
  const simd = new SimdKernel(drawers);
  const { runner, images, shape, summary, warning } = await openModel(model, (length) =>
    simd.allocate(length),
  );
  const { slots, contextLength, vocabularySize } = shape;
  // Built before the first constraint comes: for a large vocabulary it would hold up running streams.
  const grammars = new GrammarCache(
    new GrammarVocabulary(firstTokens(tokenBytes, vocabularySize)),
    (wire, tenantId) => compiler.compile(wire, tenantId),
  );
  const features = new ImageFeatures(async (pixels, signal) => {
    if (images === null) throw new Error('the model sees no images');
    return await images.encode(pixels, signal);
  });
  const kernel = isLargeVocabulary(vocabularySize) ? simd : null;
  const team = kernel && drawers && new DrawTeam(kernel, vocabularySize, drawers);
  const imagePositions = images?.positions ?? null;
  report({ type: 'ready', slots, contextLength, vocabularySize, imagePositions, summary, warning });
  const options = {
    runner,
    kernel,
    team,
    eosIds,
    maxWaiting,
    ...(speculation && { speculation }),
    vocabulary: samplerVocabulary(model.directory, tokenBytes),
    compile: (constraint: string, tenantId: string) => grammars.get(constraint, tenantId),
    encodeImages: (submission: Submission, signal: AbortSignal) => features.of(submission, signal),
    now: () => performance.now(),
    unixNow: () => Date.now(),
    cores,
  };
  try {
    await serveEngine(port, (hooks) => new Engine({ ...options, ...hooks }));
  } finally {
    runner.dispose();
    images?.dispose();
  }
} catch (error) {
  const message = messageOf(error);
  // Memory that is missing now may be there later.
  const permanent = error instanceof ModelError && !(error instanceof OutOfMemoryError);
  report({ type: 'failed', message, permanent });
} finally {
  await compiler.close();
}
port.close();
