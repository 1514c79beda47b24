import { availableParallelism } from 'node:os';
import type { GenerationDefaults } from '@continuo/shared/sampling.ts';
import * as z from 'zod';
import type { InfillSetting } from '../infill/template.ts';
import { CPU, type DeviceSettings, hasDeviceOptions, PROVIDERS } from '../model/config/device.ts';
import { PRECISIONS, type Precision } from '../model/config/model-files.ts';

/** Settings of one model: the variables set them for all, and the models file for one. */

const whole = (least: number, most: number) => z.int().min(least).max(most);

/** A field of the models file, and the variable for models that do not have it. */
const field = <T extends z.ZodType>(variable: string, value: T): T => value.meta({ variable });

/** The name that requests use. */
export const modelName = z.string().min(1).max(128);

export const modelFields = {
  /** Precision to load if the directory has several; absent = the first present. */
  variant: field('CONTINUO_MODEL_VARIANT', z.enum(PRECISIONS)),
  /** Sequences that generate at the same time. `auto` (default): as many as the memory holds, at most 64. */
  slots: field('CONTINUO_SLOTS', z.union([z.literal('auto'), whole(1, 1024)])),
  /** Positions per slot; absent = the model's maximum. */
  context: field('CONTINUO_CONTEXT', whole(16, 10_000_000)),
  /** Threads of one forward pass. */
  threads: field('CONTINUO_THREADS', whole(1, 1024)),
  /** Execution provider. `auto`: cuda, else webgpu on a real GPU, else cpu with a warning. */
  provider: field('CONTINUO_PROVIDER', z.enum(PROVIDERS)),
  /** CUDA device number; absent = the first. */
  deviceId: field('CONTINUO_DEVICE_ID', whole(0, 1023)),
  /** Maximum memory on the CUDA device in MiB, KV cache included. */
  deviceMemoryMiB: field('CONTINUO_DEVICE_MEMORY_MIB', whole(1, 100_000_000)),
  /** Maximum memory of the KV cache in MiB; a start that needs more fails. Absent = the free memory. */
  kvMemoryMiB: field('CONTINUO_KV_MEMORY_MIB', whole(1, 100_000_000)),
  /** Memory in MiB for prefixes that no slot holds; 0 = none. Absent = a quarter of the free memory. */
  prefixCacheMiB: field('CONTINUO_PREFIX_CACHE_MIB', whole(0, 100_000_000)),
  /** Maximum disk space in MiB of the model in CONTINUO_PREFIX_CACHE_DIR. */
  prefixCacheDiskMiB: field('CONTINUO_PREFIX_CACHE_DISK_MIB', whole(1, 100_000_000)),
  /** Requests of a tenant that may wait for a slot; beyond that the answer is 503. Absent = by the slots. */
  queueLimit: field('CONTINUO_QUEUE_LIMIT', whole(0, 1_000_000)),
  /** The part of a tenant's time that its prompts get while it also has streams. */
  promptShare: field('CONTINUO_PROMPT_SHARE', z.number().min(0.01).max(0.99)),
  /** Whether generation_config.json sets the defaults of temperature, top_p and so on. */
  generationConfig: field('CONTINUO_GENERATION_CONFIG', z.boolean()),
};
const givenFields = z.strictObject(modelFields).partial();
type ModelFields = z.infer<typeof givenFields>;

const variableOf = (schema: z.ZodType): string => String(schema.meta()?.variable);

/** Reads a text as the models file would have its value. */
function fromText(text: unknown): unknown {
  if (text === 'true' || text === 'false') return text === 'true';
  return Number.isFinite(Number(text)) ? Number(text) : text;
}

/** The variables of these fields. */
export const fieldVariables: object = Object.fromEntries(
  Object.values(modelFields).map((schema) => [variableOf(schema), z.preprocess(fromText, schema).optional()]),
);

/** Returns what parsed variables set of these fields. */
export const fieldsIn = (values: Readonly<Record<string, unknown>>): ModelFields =>
  Object.fromEntries(
    Object.entries(modelFields).map(([name, schema]) => [name, values[variableOf(schema)]]),
  ) as ModelFields;

/** Converts a setting in MiB; null = not set. */
export const mebibytesToBytes = (mebibytes: number | undefined): number | null =>
  mebibytes === undefined ? null : mebibytes * 2 ** 20;

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

/** More threads do not speed up the small matrix products of a decode step. */
const MAX_DEFAULT_THREADS = 8;

/** What is not set. */
export const DEFAULTS: Omit<EngineSettings, 'directory'> = {
  variant: null,
  slots: 'auto',
  contextLength: null,
  threads: Math.min(availableParallelism(), MAX_DEFAULT_THREADS),
  device: CPU,
  kvMemoryBytes: null,
  prefixCacheBytes: null,
  prefixDisk: { directory: null, limitBytes: 16_384 * 2 ** 20 },
  queueLimit: null,
  promptShare: 0.7,
  infill: 'auto',
};

/** Returns settings with the fields that are given. */
export const withFields = (base: EngineSettings, given: ModelFields): EngineSettings => ({
  directory: base.directory,
  variant: given.variant ?? base.variant,
  slots: given.slots ?? base.slots,
  contextLength: given.context ?? base.contextLength,
  threads: given.threads ?? base.threads,
  device: deviceOf(given, base.device),
  kvMemoryBytes: mebibytesToBytes(given.kvMemoryMiB) ?? base.kvMemoryBytes,
  prefixCacheBytes: mebibytesToBytes(given.prefixCacheMiB) ?? base.prefixCacheBytes,
  prefixDisk: {
    directory: base.prefixDisk.directory,
    limitBytes: mebibytesToBytes(given.prefixCacheDiskMiB) ?? base.prefixDisk.limitBytes,
  },
  queueLimit: given.queueLimit ?? base.queueLimit,
  promptShare: given.promptShare ?? base.promptShare,
  infill: base.infill,
});

/** A model with a provider without device options inherits none from the environment. */
function deviceOf(given: ModelFields, base: DeviceSettings): DeviceSettings {
  const { provider = base.provider } = given;
  const inherited = given.provider === undefined || hasDeviceOptions(provider) ? base : CPU;
  return {
    provider,
    deviceId: given.deviceId ?? inherited.deviceId,
    memoryBytes: mebibytesToBytes(given.deviceMemoryMiB) ?? inherited.memoryBytes,
  };
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
