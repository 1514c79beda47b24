import { existsSync } from 'node:fs';
import path from 'node:path';
import { readModelSettings } from '../config/config.ts';
import type { Environment } from '../config/environment.ts';
import type { EngineSettings } from '../config/model-settings.ts';
import { PRECISIONS, type Precision } from '../model/config/model-files.ts';
import { readModelsFile } from '../serving/models-file.ts';
import { findCached } from './cache.ts';
import { HubError } from './hub-error.ts';
import { requireRepository, requireRevision } from './names.ts';
import { chooseVariant, precisionOf } from './variants.ts';

export interface TargetOptions {
  /** A path, a name in the models file, or a cached owner/name; absent = all configured models. */
  readonly model: string | undefined;
  readonly variant: string | undefined;
  /** Branch, tag or commit of a cached model. */
  readonly revision: string;
  /** The directory with one directory per repository. */
  readonly cache: string;
}

/** A model to check, with the settings that the origin would use in this environment. */
export interface CheckTarget {
  readonly name: string;
  readonly engine: EngineSettings;
}

/** @throws Error one line if the configuration is wrong or the model does not exist */
export async function findCheckTargets(
  { model, variant: given, revision, cache }: TargetOptions,
  environment: Environment,
): Promise<CheckTarget[]> {
  const variant = given === undefined ? null : requirePrecision(given);
  const { model: base, modelsFile } = readModelSettings(environment);
  const configured = modelsFile === null ? [base] : readModelsFile(modelsFile, base).models;
  const withVariant = ({ name, engine }: CheckTarget) => ({
    name,
    engine: { ...engine, variant: variant ?? engine.variant },
  });
  if (model === undefined) return configured.map(withVariant);
  const named = configured.filter(({ name, aliases }) => [name, ...aliases].includes(model));
  if (modelsFile !== null && named.length > 0) return named.map(withVariant);
  const found = isPath(model)
    ? { directory: requireDirectory(model), variant }
    : await findInCache({ model, variant, revision, cache });
  return [{ name: model, engine: { ...base.engine, ...found } }];
}

const isPath = (text: string): boolean =>
  path.isAbsolute(text) || /^\.{1,2}([/\\]|$)/.test(text) || existsSync(text);

function requireDirectory(directory: string): string {
  if (existsSync(directory)) return directory;
  throw new HubError(`there is no directory ${directory}`);
}

function requirePrecision(name: string): Precision {
  const known = PRECISIONS.find((precision) => precision === name);
  if (known !== undefined) return known;
  throw new HubError(`unknown variant ${name}; known variants: ${PRECISIONS.join(', ')}`);
}

interface CachedName extends Omit<TargetOptions, 'model' | 'variant'> {
  readonly model: string;
  readonly variant: Precision | null;
}

/** Returns the variant only if the user chose it and its directory may hold other precisions. */
async function findInCache({ model, variant, revision, cache }: CachedName) {
  const repository = requireRepository(model);
  const found = await findCached(cache, repository, requireRevision(revision));
  const chosen = chooseVariant(found.variants, repository, variant ?? undefined);
  return {
    directory: path.join(found.directory, chosen.directory),
    variant: precisionOf(chosen) === null ? null : variant,
  };
}
