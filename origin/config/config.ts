import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { errorMessage } from '@continuo/shared/error-details.ts';
import { MIN_SECRET_LENGTH } from '@continuo/shared/signing.ts';
import * as z from 'zod';
import { infillSetting } from '../infill/template.ts';
import { textsOf } from '../model/config/model-directory.ts';
import { readProvenance } from '../model/config/provenance.ts';
import { type Environment, parseVariables, requireKnown } from './environment.ts';
import {
  DEFAULTS,
  fieldsIn,
  fieldVariables,
  type ModelSettings,
  modelName,
  withFields,
} from './model-settings.ts';

/** The origin's configuration: one table of environment variables, validated before anything starts. */

const whole = (least: number, most: number) => z.coerce.number().int().min(least).max(most);

const BUILT_IN_MODEL = resolve(import.meta.dirname, '../models/continuo-mini');

export const variables = z.object({
  /** Listening address. Only the Worker should be able to reach it. */
  CONTINUO_ORIGIN_HOST: z.string().min(1).default('127.0.0.1'),
  /** Listening port; 0 = any free one, printed at the start. */
  CONTINUO_ORIGIN_PORT: whole(0, 65_535).default(9100),
  /** Shared secret; the Worker signs its requests with it. */
  CONTINUO_ORIGIN_SECRET: z.string().min(MIN_SECRET_LENGTH),
  /** File with that secret, instead of the variable. */
  CONTINUO_ORIGIN_SECRET_FILE: z.string().min(1).optional(),
  /** A second secret that is accepted, while the Worker changes from one to the other. */
  CONTINUO_ORIGIN_SECRET_NEXT: z.string().min(MIN_SECRET_LENGTH).optional(),
  /** Port of metrics and detailed health; 0 = any free one; absent = none. Callers must not reach it. */
  CONTINUO_METRICS_PORT: whole(0, 65_535).optional(),
  /** Model directory: config.json or genai_config.json, tokenizer.json, the graph. */
  CONTINUO_MODEL_DIR: z.string().min(1).default(BUILT_IN_MODEL),
  /** Name under which the model is served; absent = the directory's name. */
  CONTINUO_MODEL_NAME: modelName.optional(),
  /**
   * JSON file that declares several models. Their absent fields come from the other variables. SIGHUP reads
   * it again.
   */
  CONTINUO_MODELS_FILE: z.string().min(1).optional(),
  /** Directory for prefixes that outlive memory and process; absent = none. */
  CONTINUO_PREFIX_CACHE_DIR: z.string().min(1).optional(),
  /** Seconds for running requests to finish after SIGTERM. */
  CONTINUO_DRAIN_SECONDS: whole(0, 3600).default(30),
  /** Seconds without an answer after which an engine thread with work is replaced. */
  CONTINUO_STALL_SECONDS: whole(1, 3600).default(30),
  CONTINUO_LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
  /** Fill-in-the-middle: `auto` (by the vocabulary's tokens), `off`, or a template as JSON. */
  CONTINUO_INFILL: infillSetting,
  ...fieldVariables,
});

export interface OriginConfig {
  readonly host: string;
  readonly port: number;
  /** Accepted secrets: one or two. */
  readonly secrets: readonly string[];
  /** Authenticates the files of the prefix cache; derived from the first secret. */
  readonly prefixSecret: string;
  readonly metricsPort: number | null;
  /** The model that the variables declare. */
  readonly model: ModelSettings;
  /** Declares the models instead; null = one model. */
  readonly modelsFile: string | null;
  readonly drainMs: number;
  readonly stallMs: number;
  readonly logLevel: z.infer<typeof variables>['CONTINUO_LOG_LEVEL'];
}

/** @throws Error one line that names the first CONTINUO_ variable that does not exist */
export const requireKnownVariables = (environment: Environment): void =>
  requireKnown(environment, Object.keys(variables.shape));

function withSecretOfFile(environment: Environment): Environment {
  const file = environment.CONTINUO_ORIGIN_SECRET_FILE;
  if (!file) return environment;
  try {
    return { ...environment, CONTINUO_ORIGIN_SECRET: readFileSync(file, 'utf8').trim() };
  } catch (error) {
    throw new Error(`CONTINUO_ORIGIN_SECRET_FILE: ${file} cannot be read (${errorMessage(error)})`);
  }
}

/** @throws Error one line that names the variable; never the secret's value */
export function readConfig(environment: Environment): OriginConfig {
  requireKnownVariables(environment);
  if (environment.CONTINUO_DEVICES)
    throw new Error('CONTINUO_DEVICES: only npm start reads it; start an origin for each CONTINUO_DEVICE_ID');
  const values = parseVariables(variables, withSecretOfFile(environment));
  return {
    host: values.CONTINUO_ORIGIN_HOST,
    port: values.CONTINUO_ORIGIN_PORT,
    secrets: [values.CONTINUO_ORIGIN_SECRET, values.CONTINUO_ORIGIN_SECRET_NEXT].filter(
      (value) => value !== undefined,
    ),
    prefixSecret: createHmac('sha256', values.CONTINUO_ORIGIN_SECRET).update('prefix cache').digest('hex'),
    metricsPort: values.CONTINUO_METRICS_PORT ?? null,
    model: modelOf(values),
    modelsFile: values.CONTINUO_MODELS_FILE ?? null,
    drainMs: values.CONTINUO_DRAIN_SECONDS * 1000,
    stallMs: values.CONTINUO_STALL_SECONDS * 1000,
    logLevel: values.CONTINUO_LOG_LEVEL,
  };
}

const modelVariables = variables.omit({ CONTINUO_ORIGIN_SECRET: true, CONTINUO_ORIGIN_SECRET_NEXT: true });

/** Reads the model settings only, so that no secret is needed. @throws as `readConfig` */
export function readModelSettings(environment: Environment): Pick<OriginConfig, 'model' | 'modelsFile'> {
  const values = parseVariables(modelVariables, environment);
  return { model: modelOf(values), modelsFile: values.CONTINUO_MODELS_FILE ?? null };
}

/** The name in a built model directory. A faulty file is reported when the model is inspected. */
function publishedName(directory: string): string | undefined {
  try {
    return readProvenance(textsOf(directory))?.id;
  } catch {
    return undefined;
  }
}

function modelOf(values: z.infer<typeof modelVariables>): ModelSettings {
  const {
    CONTINUO_MODEL_DIR: directory,
    CONTINUO_PREFIX_CACHE_DIR: prefixes,
    CONTINUO_INFILL: infill,
  } = values;
  const prefixDisk = { ...DEFAULTS.prefixDisk, directory: prefixes === undefined ? null : resolve(prefixes) };
  const given = fieldsIn(values);
  return {
    name: values.CONTINUO_MODEL_NAME ?? publishedName(directory) ?? basename(directory),
    aliases: [],
    source: null,
    engine: withFields({ ...DEFAULTS, directory, prefixDisk, infill }, given),
    load: 'start',
    idleMs: null,
    generationConfig: given.generationConfig ?? false,
    defaults: {},
  };
}
