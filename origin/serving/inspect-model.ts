import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { ModelBuild } from '@continuo/shared/origin-model.ts';
import type { GenerationDefaults } from '@continuo/shared/sampling.ts';
import type { ModelSettings } from '../config/model-settings.ts';
import { MARKERS } from '../infill/families.ts';
import { findInfill } from '../infill/infill.ts';
import { readGenerationDefaults } from '../model/config/generation-config.ts';
import { textsOf } from '../model/config/model-directory.ts';
import { filesOf } from '../model/config/model-files.ts';
import { readProvenance } from '../model/config/provenance.ts';
import { contentHash } from '../model/open/content-hash.ts';
import { planModel } from '../model/open/plan-model.ts';
import type { freeBytes } from '../model/open/run-limits.ts';
import { Tokenizer } from '../tokenizer/tokenizer.ts';

/** A configured model whose directory was read and checked, without loading it. */
export interface InspectedModel {
  readonly settings: ModelSettings;
  /** Changes with everything that an engine is started with: settings and files. */
  readonly key: string;
  /** Null if another tool made the graph. */
  readonly build: ModelBuild | null;
  /** Hash of the files that the model computes with. */
  readonly content: string;
  /** Unix seconds: modification time of the graph's file. */
  readonly created: number;
  /** Positions of one slot. */
  readonly contextLength: number;
  /** One line: why a default context is shorter than the model allows; else null. */
  readonly contextNote: string | null;
  readonly vocabularySize: number;
  /** True if the model has a fill-in-the-middle template. */
  readonly infill: boolean;
  readonly defaults: GenerationDefaults;
  readonly weightBytes: number;
  readonly slots: number;
  /** Most slots that the model may get; equal to `slots` unless their number is automatic. */
  readonly maxSlots: number;
  /** KV cache of one slot. */
  readonly slotBytes: number;
  readonly kvBytes: number;
  /** Memory of runs on a CUDA card; 0 on the CPU. */
  readonly runBytes: number;
  /** Main memory for prefixes; 0 = none, or not decided yet. */
  readonly storeBytes: number;
}

/** A configured model whose directory cannot be served. */
export interface FaultyModel {
  readonly settings: ModelSettings;
  /** One line. */
  readonly reason: string;
}

export interface Inspection {
  readonly models: readonly InspectedModel[];
  readonly faulty: readonly FaultyModel[];
  /** Bytes of each CUDA card, by its name, that engines can hold together. Absent = unknown. */
  readonly cards?: Readonly<Record<string, number>>;
}

/** Adds models that could not be built to the others. */
export const withFaulty = (inspection: Inspection, others: readonly FaultyModel[]): Inspection => ({
  ...inspection,
  faulty: [...others, ...inspection.faulty],
});

/** Names the model at fault, as an error of the origin's start or of a reload. */
export const faultError = ({ settings: { name }, reason }: FaultyModel): Error =>
  new Error(`${name}: ${reason}`);

/** Returns what changes with everything that an engine is started with, apart from automatic sizes. */
export const keyOf = ({ engine }: ModelSettings): string =>
  JSON.stringify([engine, existsSync(engine.directory) ? filesOf(engine.directory) : []]);

/**
 * @param free returns the free memory of a device
 * @param before its last inspection, whose context it keeps; null = it is new, or has changed
 * @returns with the least slots if their number is automatic @throws Error one clear line
 */
export function inspectModel(
  settings: ModelSettings,
  free: typeof freeBytes,
  before: InspectedModel | null,
): InspectedModel {
  const { directory, variant, slots, contextLength, device, kvMemoryBytes, infill } = settings.engine;
  if (!existsSync(directory)) {
    const where = 'CONTINUO_MODEL_DIR, or the directory in CONTINUO_MODELS_FILE';
    throw new Error(`the model directory ${directory} is missing; correct ${where}`);
  }
  const tokenizer = Tokenizer.of(textsOf(directory), MARKERS);
  const isAutomatic = slots === 'auto';
  const wanted = {
    directory,
    variant: variant ?? undefined,
    slots: isAutomatic ? 1 : slots,
    slotsMayGrow: isAutomatic,
    contextLength: contextLength ?? before?.contextLength,
    device,
    kvLimitBytes: kvMemoryBytes ?? Infinity,
  };
  const plan = planModel(wanted, free);
  const { spareSlots, contextLength: positions, positionBytes, stateBytes } = plan.layout;
  const slotBytes = positions * positionBytes + stateBytes;
  const fitting = kvMemoryBytes === null ? Infinity : Math.floor(kvMemoryBytes / slotBytes) - spareSlots;
  const maxSlots = isAutomatic ? Math.min(plan.maxSlots, fitting) : slots;
  const first = isAutomatic && kvMemoryBytes === null ? 1 : maxSlots;
  const recommended = settings.generationConfig ? readGenerationDefaults(textsOf(directory)) : {};
  return {
    settings,
    key: keyOf(settings),
    build: readProvenance(textsOf(directory)),
    content: contentHash(directory, plan),
    created: Math.floor(statSync(join(directory, plan.file)).mtimeMs / 1000),
    contextLength: positions,
    contextNote: before?.contextNote ?? plan.contextNote,
    vocabularySize: plan.decoder.vocabularySize,
    infill: findInfill(tokenizer, infill) !== null,
    defaults: { ...recommended, ...settings.defaults },
    weightBytes: plan.weightBytes,
    slots: first,
    maxSlots,
    slotBytes,
    kvBytes: (first + spareSlots) * slotBytes,
    runBytes: plan.runBytes,
    storeBytes: settings.engine.prefixCacheBytes ?? 0,
  };
}
