import { existsSync } from 'node:fs';
import path from 'node:path';
import { readModelSettings } from '../../config/config.ts';
import type { Environment } from '../../config/environment.ts';
import type { EngineSettings, ModelSettings } from '../../config/model-settings.ts';
import type { Precision } from '../../model/config/model-files.ts';
import { type BuiltSet, buildModels } from '../../serving/build-models.ts';
import { withFaulty } from '../../serving/inspect-model.ts';
import { inspectModels } from '../../serving/inspect-models.ts';
import { NO_MEMORY_LIMITS } from '../../serving/memory-budget.ts';
import { readModels } from '../../serving/models-file.ts';
import { findCached } from '../fetch/cache.ts';
import { HubError } from '../fetch/hub-error.ts';
import {
  DEFAULT_REVISION,
  isPath,
  nameOrOption,
  readRepositoryName,
  requireRevision,
} from '../fetch/names.ts';
import { chooseVariant, precisionOf } from '../fetch/variants.ts';

interface TargetOptions {
  /** A path, a name in the models file, or a cached owner/name; absent = all configured models. */
  readonly model: string | undefined;
  readonly variant: Precision | undefined;
  /** Branch, tag or commit of a cached model. */
  readonly revision: string;
  /** The directory with one directory per repository. */
  readonly cache: string;
  /** Address of the hub. */
  readonly endpoint: string;
}

/** A model to check, with the settings that the origin would use in this environment. */
export interface CheckTarget {
  readonly name: string;
  readonly engine: EngineSettings & { readonly slots: number };
}

/** @throws Error one line if the configuration is wrong or the model does not exist */
export async function findCheckTargets(
  { model, variant: given, ...where }: TargetOptions,
  environment: Environment,
): Promise<CheckTarget[]> {
  const variant = given ?? null;
  const read = readModelSettings(environment);
  const set = readModels(read);
  const isNamed = ({ name, aliases }: ModelSettings) =>
    model !== undefined && [name, ...aliases].includes(model);
  if (model === undefined || (read.modelsFile !== null && set.models.some(isNamed))) {
    const built = await buildModels(set, () => undefined);
    const models = built.models.map((settings) =>
      withEngine(settings, { variant: variant ?? settings.engine.variant }),
    );
    return withSlots({ ...built, models }, (settings) => model === undefined || isNamed(settings));
  }
  const engine = isPath(model)
    ? { directory: requireDirectory(model), variant }
    : await findInCache({ model, variant, ...where });
  const target = { ...withEngine(read.model, engine), name: model };
  return withSlots({ models: [target], faulty: [], limits: NO_MEMORY_LIMITS }, () => true);
}

const withEngine = (model: ModelSettings, engine: Partial<EngineSettings>): ModelSettings => ({
  ...model,
  engine: { ...model.engine, ...engine },
});

/**
 * Returns targets with their number of slots, beside all models that share the memory.
 * @throws Error one line if a target cannot be read
 */
function withSlots(
  { models, limits, faulty }: BuiltSet,
  isTarget: (model: ModelSettings) => boolean,
): CheckTarget[] {
  const inspection = withFaulty(inspectModels(models, limits), faulty);
  const fault = inspection.faulty.find(({ settings }) => isTarget(settings));
  if (fault !== undefined) throw new Error(fault.reason);
  return inspection.models
    .filter(({ settings }) => isTarget(settings))
    .map(({ settings: { name, engine }, slots }) => ({ name, engine: { ...engine, slots } }));
}

function requireDirectory(directory: string): string {
  if (existsSync(directory)) return directory;
  throw new HubError(`there is no directory ${directory}`);
}

interface CachedName extends Omit<TargetOptions, 'model' | 'variant'> {
  readonly model: string;
  readonly variant: Precision | null;
}

/** Returns the variant only if the user chose it and its directory may hold other precisions. */
async function findInCache({ model, variant, revision, cache, endpoint }: CachedName) {
  const named = readRepositoryName(model, endpoint);
  const { repository } = named;
  const commit = nameOrOption('revision', named.revision, requireRevision(revision), DEFAULT_REVISION);
  const cached = await findCached(cache, repository, commit);
  const wanted = nameOrOption('variant', named.variant, variant ?? undefined, undefined);
  const chosen = chooseVariant(cached.files, repository, wanted);
  if (chosen.format !== 'onnx') {
    throw new HubError(`${repository} has weights and no graph; run: continuo model build ${repository}`);
  }
  return {
    directory: path.join(cached.directory, chosen.directory),
    variant: wanted === undefined ? null : precisionOf(chosen),
  };
}
