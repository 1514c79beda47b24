import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import * as z from 'zod';
import { messageOf } from '../../shared/message-of.ts';
import { generationDefaults } from '../../shared/sampling.ts';
import {
  bytesOf,
  type ModelSettings,
  mayUseWebGpu,
  modelFields,
  modelName,
} from '../config/model-settings.ts';
import { infillTemplate } from '../infill/template.ts';
import { CPU, type DeviceSettings, hasDeviceOptions } from '../model/config/device.ts';
import { systemCode } from '../system-code.ts';
import { type MemoryLimits, UNLIMITED } from './memory-budget.ts';

/** The file that declares the models of an origin, and how much memory they may take together. */

export interface ModelSet {
  readonly models: readonly ModelSettings[];
  readonly limits: MemoryLimits;
}

/** What a model leaves out is taken from the environment's variables. */
const model = z.strictObject({
  name: modelName,
  /** Further names; `default` makes it the one that a request without a choice gets. */
  aliases: z.array(modelName).default([]),
  /** Relative to the file. */
  directory: z.string().min(1),
  load: z.enum(['start', 'first-use']).default('start'),
  /** Seconds without a request after which it is unloaded; never when absent. */
  idleSeconds: z.int().min(1).max(31_536_000).optional(),
  infill: z.union([z.enum(['auto', 'off']), infillTemplate], 'neither auto, off nor a template').optional(),
  defaults: generationDefaults.default({}),
  ...z.strictObject(modelFields).partial().shape,
});

const modelsFile = z
  .strictObject({
    memoryMiB: z.int().min(1).optional(),
    deviceMemoryMiB: z.int().min(1).optional(),
    models: z.array(model).min(1),
  })
  .superRefine(({ models }, context) => {
    const taken = new Set<string>();
    for (const [index, { name, aliases }] of models.entries()) {
      for (const [position, one] of [name, ...aliases].entries()) {
        const path = position === 0 ? ['name'] : ['aliases', position - 1];
        if (taken.has(one)) {
          context.addIssue({
            code: 'custom',
            message: `the name ${one} is taken`,
            path: ['models', index, ...path],
          });
        }
        taken.add(one);
      }
    }
  });

/**
 * @param base the environment's one model, for what a model leaves out
 * @throws Error one line naming the file and the field
 */
export function readModelsFile(file: string, base: ModelSettings): ModelSet {
  const parsed = modelsFile.safeParse(readJson(file));
  if (!parsed.success) {
    throw new Error(`${file}: ${describe(parsed.error.issues[0]!)}`);
  }
  const { memoryMiB, deviceMemoryMiB, models } = parsed.data;
  const settings = models.map((entry) => settingsOf(entry, dirname(file), base));
  requireOneOnWebGpu(settings, file);
  const limits = {
    mainBytes: bytesOf(memoryMiB) ?? UNLIMITED.mainBytes,
    cardBytes: bytesOf(deviceMemoryMiB) ?? UNLIMITED.cardBytes,
  };
  return { limits, models: settings };
}

/** Of a field with alternatives, the fault inside of the one that was meant. */
function describe(issue: z.core.$ZodIssue, outer: readonly PropertyKey[] = []): string {
  const path = [...outer, ...issue.path];
  const meant =
    issue.code === 'invalid_union'
      ? issue.errors.find(([first]) => (first?.path.length ?? 0) > 0)
      : undefined;
  if (meant !== undefined) return describe(meant[0]!, path);
  return `${path.join('.') || 'the file'}: ${issue.message}`;
}

/** ONNX Runtime's WebGPU provider has one command queue per process, which crashes when two threads fill it. */
function requireOneOnWebGpu(models: readonly ModelSettings[], file: string): void {
  const isOnWebGpu = ({ engine }: ModelSettings) => mayUseWebGpu(engine.device);
  if (models.filter(isOnWebGpu).length < 2) return;
  const last = models.findLastIndex(isOnWebGpu);
  throw new Error(`${file}: models.${last}.provider: only one model of an origin can be on webgpu or auto`);
}

function readJson(file: string): unknown {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const code = systemCode(error);
    throw new Error(`${file}: ${code === 'ENOENT' ? 'the file is missing' : `cannot be read: ${code}`}`);
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${file}: not valid JSON: ${messageOf(error).replaceAll(/\s+/g, ' ')}`);
  }
}

/** A model that chooses a provider without device options takes none from the environment. */
function deviceOf(entry: z.infer<typeof model>, base: DeviceSettings): DeviceSettings {
  const { provider = base.provider } = entry;
  const inherited = entry.provider === undefined || hasDeviceOptions(provider) ? base : CPU;
  return {
    provider,
    deviceId: entry.deviceId ?? inherited.deviceId,
    memoryBytes: bytesOf(entry.deviceMemoryMiB) ?? inherited.memoryBytes,
  };
}

function settingsOf(entry: z.infer<typeof model>, folder: string, base: ModelSettings): ModelSettings {
  const { engine } = base;
  const { speculation, speculationRows, forcedTokens, cacheGenerated } = entry;
  return {
    name: entry.name,
    aliases: entry.aliases,
    engine: {
      directory: resolve(folder, entry.directory),
      variant: entry.variant ?? engine.variant,
      slots: entry.slots ?? engine.slots,
      contextLength: entry.context ?? engine.contextLength,
      threads: entry.threads ?? engine.threads,
      device: deviceOf(entry, engine.device),
      kvMemoryBytes: bytesOf(entry.kvMemoryMiB) ?? engine.kvMemoryBytes,
      queueLimit: entry.queueLimit ?? engine.queueLimit,
      shortcuts: {
        drafts: speculation ?? engine.shortcuts.drafts,
        draftRows: speculationRows ?? engine.shortcuts.draftRows,
        forcedTokens: forcedTokens ?? engine.shortcuts.forcedTokens,
        cacheGenerated: cacheGenerated ?? engine.shortcuts.cacheGenerated,
      },
      infill: entry.infill ?? engine.infill,
    },
    load: entry.load,
    idleMs: entry.idleSeconds === undefined ? null : entry.idleSeconds * 1000,
    generationConfig: entry.generationConfig ?? base.generationConfig,
    defaults: entry.defaults,
  };
}
