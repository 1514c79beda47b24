import { availableParallelism } from 'node:os';
import type { GenerationDefaults } from '@continuo/shared/sampling.ts';
import * as z from 'zod';
import type { InfillSetting } from '../infill/template.ts';
import { type DeviceSettings, PROVIDERS } from '../model/config/device.ts';
import { PRECISIONS, type Precision } from '../model/config/model-files.ts';

/** Settings of one model. Environment variables and the models file have the same fields. */

const whole = (least: number, most: number) => z.int().min(least).max(most);

/** More threads do not speed up the small matrix products of a decode step. */
const MAX_DEFAULT_THREADS = 8;

/** The name that requests use. */
export const modelName = z.string().min(1).max(128);

export const modelFields = {
  variant: z.enum(PRECISIONS),
  slots: z.union([z.literal('auto'), whole(1, 1024)]),
  context: whole(16, 10_000_000),
  threads: whole(1, 1024),
  provider: z.enum(PROVIDERS),
  deviceId: whole(0, 1023),
  deviceMemoryMiB: whole(1, 100_000_000),
  kvMemoryMiB: whole(1, 100_000_000),
  prefixCacheMiB: whole(0, 100_000_000),
  prefixCacheDiskMiB: whole(1, 100_000_000),
  queueLimit: whole(0, 1_000_000),
  promptShare: z.number().min(0.01).max(0.99),
  generationConfig: z.boolean(),
};

/** Converts a setting in MiB; null = not set. */
export const mebibytesToBytes = (mebibytes: number | undefined): number | null =>
  mebibytes === undefined ? null : mebibytes * 2 ** 20;

export const defaultThreads = (): number => Math.min(availableParallelism(), MAX_DEFAULT_THREADS);

/** The second tier of the prefix store. */
export interface PrefixDiskSettings {
  /** Absolute; null = there is no second tier. */
  readonly directory: string | null;
  /** Most bytes of a model's files. */
  readonly limitBytes: number;
}

/** Settings that an engine is started with. A change of any of them means a new engine. */
export interface EngineSettings {
  readonly directory: string;
  /** Null = the first precision present. */
  readonly variant: Precision | null;
  /** `auto` = as many as the memory holds. */
  readonly slots: number | 'auto';
  /** Null = the model's own maximum. */
  readonly contextLength: number | null;
  readonly threads: number;
  readonly device: DeviceSettings;
  /** Null = the free memory. */
  readonly kvMemoryBytes: number | null;
  /** Null = a share of the memory that all models leave. */
  readonly prefixCacheBytes: number | null;
  readonly prefixDisk: PrefixDiskSettings;
  /** Null = in proportion to the slots. */
  readonly queueLimit: number | null;
  /** The part of a tenant's time that its prompts get while it also has streams. */
  readonly promptShare: number;
  readonly infill: InfillSetting;
}

/** Published weights that a model is built from before it is served. */
export interface ModelSource {
  /** Argument of `continuo model build`: `owner/name[:variant]`, a directory or a .gguf file. */
  readonly model: string;
  readonly precision: string | null;
  /** Directory of a LoRA adapter. */
  readonly adapter: string | null;
  /** Where relative paths start. */
  readonly folder: string;
}

/** One configured model. */
export interface ModelSettings {
  /** Name under which it is served. */
  readonly name: string;
  /** Further names. */
  readonly aliases: readonly string[];
  /** Null if the engine's directory is served as it is; otherwise `buildModels` replaces that directory. */
  readonly source: ModelSource | null;
  readonly engine: EngineSettings;
  readonly load: 'start' | 'first-use';
  /** Unload after this long without a request; null = never. */
  readonly idleMs: number | null;
  /** True if generation_config.json sets the model's sampling defaults. */
  readonly generationConfig: boolean;
  /** Override those of generation_config.json. */
  readonly defaults: GenerationDefaults;
}
