import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as z from 'zod';
import { infillSetting } from '../infill/template.ts';
import { type Environment, setVariables } from './environment.ts';
import { bytesOf, defaultThreads, type ModelSettings, modelFields, modelName } from './model-settings.ts';

/** The origin's configuration: one table of environment variables, checked before anything starts. */

const whole = (least: number, most: number) => z.coerce.number().int().min(least).max(most);

const onOff = z.stringbool({ truthy: ['true'], falsy: ['false'] }).default(false);

const BUILT_IN_MODEL = fileURLToPath(new URL('../models/continuo-mini', import.meta.url));

/** A number of the environment, which is text, in the range of a model's field. */
const number = (field: z.ZodType<number, number>) => z.coerce.number().pipe(field);

export const variables = z.object({
  /** Address to listen on; the Worker must reach it, nobody else should. */
  CONTINUO_ORIGIN_HOST: z.string().min(1).default('127.0.0.1'),
  /** Port to listen on; 0 = any free one (printed at the start). */
  CONTINUO_ORIGIN_PORT: whole(0, 65_535).default(9100),
  /** Shared with the Worker, which signs its requests with it. */
  CONTINUO_ORIGIN_SECRET: z.string().min(8),
  /** Directory of a model as it is published: config.json or genai_config.json, tokenizer.json, the graph. */
  CONTINUO_MODEL_DIR: z.string().min(1).default(BUILT_IN_MODEL),
  /** Which precision to load where the directory holds several; the CPU's best that is there when absent. */
  CONTINUO_MODEL_VARIANT: modelFields.variant.optional(),
  /** Name under which the model is served; the directory's name when absent. */
  CONTINUO_MODEL_NAME: modelName.optional(),
  /** JSON file that declares several models; what they leave out is taken from the other variables. Read again on SIGHUP. */
  CONTINUO_MODELS_FILE: z.string().min(1).optional(),
  /** Sequences that generate at the same time. */
  CONTINUO_SLOTS: number(modelFields.slots).default(8),
  /** Positions per slot; the model's own maximum when absent. */
  CONTINUO_CONTEXT: number(modelFields.context).optional(),
  /** Threads of one forward pass. */
  CONTINUO_THREADS: number(modelFields.threads).default(defaultThreads),
  /** What computes: ONNX Runtime's execution provider. `auto`: cuda, else webgpu on a real GPU, else cpu with a warning. */
  CONTINUO_PROVIDER: modelFields.provider.default('cpu'),
  /** CUDA's number of the card; the first when absent. */
  CONTINUO_DEVICE_ID: number(modelFields.deviceId).optional(),
  /** Most memory ONNX Runtime may take on the CUDA device, KV cache included, in MiB. */
  CONTINUO_DEVICE_MEMORY_MIB: number(modelFields.deviceMemoryMiB).optional(),
  /** Most memory the KV cache may take, in MiB; a larger slots × context stops the start. All that is free if absent. */
  CONTINUO_KV_MEMORY_MIB: number(modelFields.kvMemoryMiB).optional(),
  /** Sequences that may wait for a slot; beyond it the answer is 503. */
  CONTINUO_QUEUE_LIMIT: number(modelFields.queueLimit).default(256),
  /**
   * Tokens guessed ahead, by prompt look-up, of a sequence that runs nearly alone; 0 = none. Faster where a text repeats
   * itself, but then an answer may depend, by rounding, on what else is running.
   */
  CONTINUO_SPECULATION: number(modelFields.speculation).default(0),
  /** Sequences that may be running at once for tokens to be guessed. */
  CONTINUO_SPECULATION_ROWS: number(modelFields.speculationRows).default(1),
  /** `true`: several tokens that a grammar forces are computed in one run. Changes answers by rounding only. */
  CONTINUO_FORCED_TOKENS: onOff,
  /**
   * `true`: generated text is kept for reuse, too, not prompts alone. An answer may then depend, by rounding, on what
   * the same tenant has asked before.
   */
  CONTINUO_CACHE_GENERATED: onOff,
  /** `true`: temperature, top_p and so on of the model's generation_config.json stand in for what a request leaves out. */
  CONTINUO_GENERATION_CONFIG: onOff,
  /** Seconds that running requests get to finish after SIGTERM. */
  CONTINUO_DRAIN_SECONDS: whole(0, 3600).default(30),
  CONTINUO_LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
  /** Fill-in-the-middle: `auto` (by the tokens of the vocabulary), `off`, or a template as JSON. */
  CONTINUO_INFILL: infillSetting,
});

export interface OriginConfig {
  readonly host: string;
  readonly port: number;
  readonly secret: string;
  /** The one model of the variables. */
  readonly model: ModelSettings;
  /** Declares the models instead; null = there is the one. */
  readonly modelsFile: string | null;
  readonly drainMs: number;
  readonly logLevel: z.infer<typeof variables>['CONTINUO_LOG_LEVEL'];
}

/** @throws Error one line naming the variable at fault; never the secret's value */
export function readConfig(environment: Environment): OriginConfig {
  const given = setVariables(environment);
  const parsed = variables.safeParse(given);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const name = String(issue?.path[0]);
    const missing = given[name] === undefined;
    throw new Error(`${name}: ${missing ? 'must be set' : (issue?.message ?? 'not valid')}`);
  }
  const values = parsed.data;
  return {
    host: values.CONTINUO_ORIGIN_HOST,
    port: values.CONTINUO_ORIGIN_PORT,
    secret: values.CONTINUO_ORIGIN_SECRET,
    model: modelOf(values),
    modelsFile: values.CONTINUO_MODELS_FILE ?? null,
    drainMs: values.CONTINUO_DRAIN_SECONDS * 1000,
    logLevel: values.CONTINUO_LOG_LEVEL,
  };
}

function modelOf(values: z.infer<typeof variables>): ModelSettings {
  return {
    name: values.CONTINUO_MODEL_NAME ?? basename(values.CONTINUO_MODEL_DIR),
    aliases: [],
    engine: {
      directory: values.CONTINUO_MODEL_DIR,
      variant: values.CONTINUO_MODEL_VARIANT ?? null,
      slots: values.CONTINUO_SLOTS,
      contextLength: values.CONTINUO_CONTEXT ?? null,
      threads: values.CONTINUO_THREADS,
      device: {
        provider: values.CONTINUO_PROVIDER,
        deviceId: values.CONTINUO_DEVICE_ID ?? null,
        memoryBytes: bytesOf(values.CONTINUO_DEVICE_MEMORY_MIB),
      },
      kvMemoryBytes: bytesOf(values.CONTINUO_KV_MEMORY_MIB),
      queueLimit: values.CONTINUO_QUEUE_LIMIT,
      shortcuts: {
        drafts: values.CONTINUO_SPECULATION,
        draftRows: values.CONTINUO_SPECULATION_ROWS,
        forcedTokens: values.CONTINUO_FORCED_TOKENS,
        cacheGenerated: values.CONTINUO_CACHE_GENERATED,
      },
      infill: values.CONTINUO_INFILL,
    },
    load: 'start',
    idleMs: null,
    generationConfig: values.CONTINUO_GENERATION_CONFIG,
    defaults: {},
  };
}
