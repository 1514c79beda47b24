import { availableParallelism } from 'node:os';
import * as z from 'zod';
import type { GenerationDefaults } from '../../shared/sampling.ts';
import type { Shortcuts } from '../engine/shortcuts.ts';
import type { InfillSetting } from '../infill/template.ts';
import { type DeviceSettings, PROVIDERS } from '../model/config/device.ts';
import { PRECISIONS, type Precision } from '../model/config/model-files.ts';

/** What can be set per model; the environment and the models' file give the same fields. */

const whole = (least: number, most: number) => z.int().min(least).max(most);

/** More threads than this do not speed up the small matrix products of one decode step. */
const MOST_DEFAULT_THREADS = 8;

/** As it stands in a request. */
export const modelName = z.string().min(1).max(128);

export const modelFields = {
  variant: z.enum(PRECISIONS),
  slots: whole(1, 1024),
  context: whole(16, 10_000_000),
  threads: whole(1, 1024),
  provider: z.enum(PROVIDERS),
  deviceId: whole(0, 1023),
  deviceMemoryMiB: whole(1, 100_000_000),
  kvMemoryMiB: whole(1, 100_000_000),
  queueLimit: whole(0, 1_000_000),
  speculation: whole(0, 64),
  speculationRows: whole(1, 1024),
  forcedTokens: z.boolean(),
  cacheGenerated: z.boolean(),
  generationConfig: z.boolean(),
};

/** Of a setting in MiB; null = it is not set. */
export const bytesOf = (mebibytes: number | undefined): number | null =>
  mebibytes === undefined ? null : mebibytes * 2 ** 20;

export const defaultThreads = (): number => Math.min(availableParallelism(), MOST_DEFAULT_THREADS);

/** What an engine is started with: a change of any of it means another engine. */
export interface EngineSettings {
  readonly directory: string;
  /** Null = the best that is there. */
  readonly variant: Precision | null;
  readonly slots: number;
  /** Null = the model's own maximum. */
  readonly contextLength: number | null;
  readonly threads: number;
  readonly device: DeviceSettings;
  /** Null = what the machine has free. */
  readonly kvMemoryBytes: number | null;
  readonly queueLimit: number;
  readonly shortcuts: Shortcuts;
  readonly infill: InfillSetting;
}

/** It runs on WebGPU, or may. */
export const mayUseWebGpu = ({ provider }: DeviceSettings): boolean =>
  provider === 'webgpu' || provider === 'auto';

/** One model as it is configured. */
export interface ModelSettings {
  /** Name under which it is served. */
  readonly name: string;
  /** Further names. */
  readonly aliases: readonly string[];
  readonly engine: EngineSettings;
  readonly load: 'start' | 'first-use';
  /** Unloaded after this long without a request; null = never. */
  readonly idleMs: number | null;
  /** The sampling of generation_config.json becomes the model's default. */
  readonly generationConfig: boolean;
  /** Win over those of generation_config.json. */
  readonly defaults: GenerationDefaults;
}
