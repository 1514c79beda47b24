import { dirname, resolve } from 'node:path';
import { generationDefaults } from '@continuo/shared/sampling.ts';
import * as z from 'zod';
import type { OriginConfig } from '../config/config.ts';
import {
  type ModelSettings,
  type ModelSource,
  mebibytesToBytes,
  modelFields,
  modelName,
  withFields,
} from '../config/model-settings.ts';
import { readJsonFile } from '../config/named-file.ts';
import { infillTemplate } from '../infill/template.ts';
import { BUILT_PRECISIONS } from '../model/config/model-files.ts';
import { type MemoryLimits, NO_MEMORY_LIMITS } from './memory-budget.ts';

/** Reads the file that declares the models of an origin and their memory limits. */

export interface ModelSet {
  readonly models: readonly ModelSettings[];
  readonly limits: MemoryLimits;
}

/** Returns the configured models: those of the file, or the one of the variables. @throws Error one line */
export const readModels = ({ modelsFile, model }: Pick<OriginConfig, 'model' | 'modelsFile'>): ModelSet =>
  modelsFile === null ? { models: [model], limits: NO_MEMORY_LIMITS } : readModelsFile(modelsFile, model);

/** Absent fields are taken from the environment variables. */
const modelEntry = z.strictObject({
  name: modelName,
  /** Further names; `default` makes it the model of requests without a choice. */
  aliases: z.array(modelName).default([]),
  /** A directory with a graph, relative to the file. */
  directory: z.string().min(1).optional(),
  /** What is built first: `owner/name[:variant]`, a directory or a .gguf file. */
  model: z.string().min(1).optional(),
  precision: z.enum(BUILT_PRECISIONS).optional(),
  adapter: z.string().min(1).optional(),
  load: z.enum(['start', 'first-use']).default('start'),
  /** Unload after this many seconds without a request; absent = never. */
  idleSeconds: z.int().min(1).max(31_536_000).optional(),
  infill: z.union([z.enum(['auto', 'off']), infillTemplate], 'expected auto, off or a template').optional(),
  defaults: generationDefaults.strict().default({}),
  ...z.strictObject(modelFields).partial().shape,
});
type ModelEntry = z.infer<typeof modelEntry>;

const model = modelEntry.superRefine((entry, context) => {
  const fault = sourceFault(entry);
  if (fault !== null) context.addIssue({ code: 'custom', ...fault });
});

/** What is built has no other variants, and what is served as it is has no precision to choose. */
function sourceFault({ directory, model: named, variant, precision, adapter }: ModelEntry) {
  if ((directory === undefined) === (named === undefined))
    return { path: ['directory'], message: 'expected either directory or model' };
  if (named !== undefined && variant !== undefined)
    return {
      path: ['variant'],
      message: 'only for a directory; write it after the name: owner/name:variant',
    };
  const builds =
    precision === undefined ? (['adapter', adapter] as const) : (['precision', precision] as const);
  if (named === undefined && builds[1] !== undefined)
    return { path: [builds[0]], message: 'only with model, which is built' };
  return null;
}

const modelsFile = z
  .strictObject({
    memoryMiB: z.int().min(1).optional(),
    deviceMemoryMiB: z.int().min(1).optional(),
    models: z.array(model).min(1),
  })
  .superRefine(({ models }, context) => {
    const taken = new Set<string>();
    for (const [index, { name, aliases }] of models.entries()) {
      for (const [position, alias] of [name, ...aliases].entries()) {
        const path = position === 0 ? ['name'] : ['aliases', position - 1];
        if (taken.has(alias)) {
          context.addIssue({
            code: 'custom',
            message: `the name ${alias} is used twice`,
            path: ['models', index, ...path],
          });
        }
        taken.add(alias);
      }
    }
  });

/**
 * @param base settings for absent fields
 * @throws Error one line that names the file and the field
 */
function readModelsFile(file: string, base: ModelSettings): ModelSet {
  const parsed = modelsFile.safeParse(readJsonFile(file));
  if (!parsed.success) {
    throw new Error(`${file}: ${describe(parsed.error.issues[0]!)}`);
  }
  const { memoryMiB, deviceMemoryMiB, models } = parsed.data;
  const settings = models.map((entry) => settingsOf(entry, dirname(file), base));
  const limits = {
    mainBytes: mebibytesToBytes(memoryMiB) ?? NO_MEMORY_LIMITS.mainBytes,
    cardBytes: mebibytesToBytes(deviceMemoryMiB) ?? NO_MEMORY_LIMITS.cardBytes,
  };
  return { limits, models: settings };
}

/** Describes a fault; for a union, the fault in the alternative that was meant. */
function describe(issue: z.core.$ZodIssue, outer: readonly PropertyKey[] = []): string {
  const path = [...outer, ...issue.path];
  const meant =
    issue.code === 'invalid_union'
      ? issue.errors.find(([first]) => (first?.path.length ?? 0) > 0)
      : undefined;
  if (meant !== undefined) return describe(meant[0]!, path);
  return `${path.join('.') || 'the file'}: ${issue.message}`;
}

const sourceOf = ({ model: named, precision, adapter }: ModelEntry, folder: string): ModelSource | null =>
  named === undefined
    ? null
    : { model: named, precision: precision ?? null, adapter: adapter ?? null, folder: resolve(folder) };

function settingsOf(entry: ModelEntry, folder: string, base: ModelSettings): ModelSettings {
  const { engine } = base;
  const directory = resolve(folder, entry.directory ?? '');
  return {
    name: entry.name,
    aliases: entry.aliases,
    source: sourceOf(entry, folder),
    engine: withFields({ ...engine, directory, infill: entry.infill ?? engine.infill }, entry),
    load: entry.load,
    idleMs: entry.idleSeconds === undefined ? null : entry.idleSeconds * 1000,
    generationConfig: entry.generationConfig ?? base.generationConfig,
    defaults: entry.defaults,
  };
}
