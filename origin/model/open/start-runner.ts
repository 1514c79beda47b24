import { oneLine } from '@continuo/shared/error-details.ts';
import { ModelError } from '../config/model-json.ts';
import type { DecoderInterface } from '../decoder/decoder-interface.ts';
import { OrtConcatRunner } from '../foreign/ort-concat-runner.ts';
import { faultKind, MEMORY_ADVICE, type ModelRunner } from '../model-runner.ts';
import type { OnnxGraph } from '../onnx/onnx-graph.ts';
import type { OrtDevice } from '../ort/ort-device.ts';
import type { OrtSession } from '../ort/ort-session.ts';
import { deviceRunner } from '../runner/device/device-runner.ts';
import { GraphRunner } from '../runner/device/graph-runner.ts';
import { describeLayout } from '../runner/kv-cache.ts';
import { OrtRunner } from '../runner/ort-runner.ts';
import { MAX_PREFILL_CHUNKS, type RunnerOptions } from '../runner/runner-options.ts';
import { SingleRowRunner } from '../runner/single-row-runner.ts';
import { readsSeveralAfterPast, requireFiniteLogits } from './probe.ts';
import { areNear, findJoinsPrompts, findMaxPrefillChunks, withProbedRows } from './row-probe.ts';

/** ONNX Runtime's name of CPU memory. */
const CPU_MEMORY = 'Cpu';

/**
 * Requires GroupQueryAttention, which extends its past in place, so that the KV cache stays on the device.
 * @throws ModelError
 */
export function requireGroupQueryAttention({ cache }: DecoderInterface, file: string): void {
  if (cache === 'in-place') return;
  throw new ModelError(`${file} has no GroupQueryAttention and runs only on the provider cpu`);
}

/** Providers whose GroupQueryAttention has such a cache, as of ONNX Runtime 1.30. Others are on all. */
const NARROW_KV: Partial<Record<DecoderInterface['kvType'], readonly OrtDevice['provider'][]>> = {
  bfloat16: ['cuda'],
  float8e4m3fn: ['cuda'],
  int8: ['cpu', 'cuda'],
};

/** @throws ModelError that names the providers that can run the graph */
export function requireKvKernels({ kvType }: DecoderInterface, { provider }: OrtDevice, file: string): void {
  const providers = NARROW_KV[kvType];
  if (providers === undefined || providers.includes(provider)) return;
  const where = providers.map((name) => `CONTINUO_PROVIDER=${name}`).join(' or ');
  throw new ModelError(
    `${file} has KV in ${kvType}, which ${provider} does not support; set ${where}, or build another precision`,
  );
}

/** The graph that a session has loaded. */
interface LoadedGraph {
  /** Its file's name, for messages. */
  readonly file: string;
  readonly graph: OnnxGraph;
}

/** Creates and probes the runner for a graph and device. Owns the session, disposed if this throws. */
export async function startRunner(
  session: OrtSession,
  options: RunnerOptions,
  loaded: LoadedGraph,
): Promise<ModelRunner> {
  const { file } = loaded;
  const runner = session.copiesInputs
    ? startOnDevice(session, options, loaded)
    : startOnCpu(session, options);
  try {
    const chunks = session.device.provider === 'cuda' ? MAX_PREFILL_CHUNKS : 1;
    await requireFiniteLogits(runner, file, { place: session.copiesInputs ? 'end' : 'start', chunks });
    if (runner instanceof OrtConcatRunner) {
      runner.severalAfterPast = await readsSeveralAfterPast(runner, file);
    }
    if (runner instanceof GraphRunner) capture(runner, session);
    return await withIndependentRows(runner, options, session.device);
  } catch (error) {
    runner.dispose();
    throw error;
  }
}

/** During a capture, no other thread of the process may call CUDA. */
function capture(runner: GraphRunner, { turns }: OrtSession): void {
  if (turns?.alone) turns.alone(() => runner.capture());
  else runner.capture();
}

interface RowOptions extends Pick<RunnerOptions, 'allocateLogits' | 'embedder'> {
  readonly decoder: Pick<DecoderInterface, 'cache' | 'couplesRows'>;
}

/** A runner with independent rows: bit for bit on the CPU, elsewhere unless the graph couples them. */
export async function withIndependentRows(
  runner: ModelRunner,
  { decoder, allocateLogits, embedder = null }: RowOptions,
  { provider }: Pick<OrtDevice, 'provider'>,
): Promise<ModelRunner> {
  if (decoder.cache !== 'in-place') return runner;
  if (decoder.couplesRows) return new SingleRowRunner(runner, allocateLogits);
  // Padding would change states.
  const canJoin = !runner.states && (runner instanceof OrtRunner || runner instanceof GraphRunner);
  // A run of a card takes about as long with one short prompt as with several. A CPU gains nothing.
  if (provider === 'cuda' && canJoin && embedder === null) {
    runner.addProbed({ joinsPrompts: await findJoinsPrompts(runner) });
    runner.addProbed({ maxPrefillChunks: await findMaxPrefillChunks(runner, areNear) });
  }
  // Devices choose kernels by the number of rows. Running row by row would defeat their purpose.
  if (provider !== 'cpu' || !(runner instanceof OrtRunner)) return runner;
  return withProbedRows(runner, allocateLogits);
}

function startOnCpu(session: OrtSession, options: RunnerOptions): OrtRunner | OrtConcatRunner {
  const Runner = options.decoder.cache === 'in-place' ? OrtRunner : OrtConcatRunner;
  try {
    return new Runner(session, options);
  } catch (error) {
    session.dispose();
    throw error;
  }
}

function startOnDevice(
  session: OrtSession,
  options: RunnerOptions,
  { file, graph }: LoadedGraph,
): ModelRunner {
  const { provider } = session.device;
  const { kv, kvType, states } = options.decoder;
  const memories = session.inputMemories(graph.inputs.length);
  const away = graph.inputs.filter((_, index) => memories[index] === CPU_MEMORY).map(({ name }) => name);
  const isAway = ({ past }: { readonly past: string }) => away.includes(past);
  if ([...kv, ...states].some(isAway)) {
    session.dispose();
    const lacking = kv.some(isAway) ? `GroupQueryAttention for ${kvType}` : 'operators for its states';
    throw new ModelError(`${file}: ${provider} has no ${lacking}; take another variant`);
  }
  try {
    return deviceRunner(session, options);
  } catch (error) {
    const cache = describeLayout(options.layout);
    const message = `${provider} cannot start ${file} with a KV cache of ${cache}: ${oneLine(error)}`;
    const advice = faultKind(error) === 'out-of-memory' ? `; ${MEMORY_ADVICE}` : '';
    throw new ModelError(`${message}${advice}`, { cause: error });
  }
}
