import type { CompiledGrammar } from '@continuo/grammar/runtime/constraint.ts';
import type { PatternSet } from '@continuo/grammar/runtime/pattern-set.ts';
import type { EmbeddedImage, ModelRunner } from '../../model/model-runner.ts';
import type { SimdKernel } from '../../sampling/kernel/simd-kernel.ts';
import type { SamplerPool } from '../../sampling/pool/sampler-pool.ts';
import type { TokenBytes } from '../../tokenizer/token-bytes.ts';
import type { SecondTier } from '../kv/second-tier.ts';
import type { EngineReport, Submission } from '../messages.ts';

/**
 * Token events per second and core. An event costs up to 0.5 ms in the origin, the Worker and the client
 * together, so these limits are below a tenth and a fifth of a machine's cores. Beside a card, cores have
 * little else to do: with 16 of them, 128 streams send an event every 20 ms.
 */
const EVENTS_PER_CORE = { cpu: 150, device: 400 } as const;

export const maxEventsPerSecond = (cores: number, onDevice: boolean): number =>
  cores * EVENTS_PER_CORE[onDevice ? 'device' : 'cpu'];

/** What an engine tells its loop. */
export interface EngineHooks {
  readonly report: (report: EngineReport) => void;
  /** Called when an idle engine has work again, for example when a submission has been prepared. */
  readonly onWork: () => void;
}

/** Everything that an engine needs. Its parts get it whole, and their collaborators beside it. */
export interface EngineOptions extends EngineHooks {
  readonly runner: ModelRunner;
  readonly tokenBytes: TokenBytes;
  /** The model's end tokens. */
  readonly eosIds: readonly number[];
  /** Reads the runner's logits in place if they lie in its memory. */
  readonly kernel: SimdKernel;
  /** Draws the tokens of a step on several threads. Default: each sequence samples by itself. */
  readonly pool?: SamplerPool | null;
  /** Token events that all streams share. Default: Infinity, which sends them as often as submissions ask. */
  readonly maxEventsPerSecond?: number;
  /** Requests that may wait for a slot. */
  readonly maxWaiting: number;
  /** The part of a tenant's time that its prompts get while it also has streams; default: one half. */
  readonly promptShare?: number | undefined;
  /** Memory of the prefix store; default 0 = none. */
  readonly prefixStoreBytes?: number | undefined;
  /** The second tier of the prefix store; null or absent = none. */
  readonly disk?: SecondTier | null;
  /**
   * @param constraint a WireConstraint as JSON
   * @throws ApiError if the grammar is not valid
   */
  readonly compile: (constraint: string, tenantId: string) => CompiledGrammar | Promise<CompiledGrammar>;
  /**
   * @param list a PatternList as JSON
   * @throws ApiError if a pattern is not valid
   */
  readonly compilePatterns?: (list: string, tenantId: string) => Promise<PatternSet>;
  /** Encodes each prompt's images; absent if the model takes none. @throws ApiError if the model fails */
  readonly encodeImages?: (
    submission: Submission,
    signal: AbortSignal,
  ) => Promise<readonly (readonly EmbeddedImage[])[]>;
  /** Milliseconds, with fractions, of a monotonic clock. */
  readonly now: () => number;
  /** Unix milliseconds, the clock of the submissions' deadlines. */
  readonly unixNow: () => number;
}
