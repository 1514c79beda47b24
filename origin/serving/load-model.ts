import { hash } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PrefixDiskSettings } from '../config/model-settings.ts';
import type { PrefixDisk } from '../engine/kv/disk/disk-tier.ts';
import type { StepReport } from '../engine/messages.ts';
import { EngineClient, spawnEngineThread } from '../engine/thread/engine-client.ts';
import type { ImageInput } from '../images/prompt-images.ts';
import { MARKERS } from '../infill/families.ts';
import { findInfill } from '../infill/infill.ts';
import { readModelConfig } from '../model/config/model-config.ts';
import { textsOf } from '../model/config/model-directory.ts';
import { readImageRecipe } from '../model/config/preprocessor-config.ts';
import type { Logger } from '../process/log.ts';
import type { HostedModel } from '../request/hosted-model.ts';
import { Encoder } from '../tokenizer/encoder.ts';
import { Tokenizer } from '../tokenizer/tokenizer.ts';
import { TokenizerThreads } from '../tokenizer/tokenizer-thread.ts';
import type { InspectedModel } from './inspect-model.ts';

/** The engine as the HTTP side uses it. */
export type EngineAccess = Pick<EngineClient, 'status' | 'lastFault' | 'submit' | 'abort' | 'stop'>;

/** A model and the engine that runs it. */
export interface LoadedModel {
  readonly model: HostedModel;
  readonly engine: EngineAccess;
}

export interface LoadHooks {
  readonly log: Logger;
  /** Longest silence of a working engine thread. */
  readonly stallMs: number;
  /** Milliseconds. */
  readonly now: () => number;
  onSteps(reports: readonly StepReport[]): void;
  /** Of `createEngineLocks`, shared by the threads of all engines. */
  readonly engineLocks: SharedArrayBuffer;
  /** Authenticates the files of the prefix cache. */
  readonly prefixSecret: string;
  /** Called when this process can no longer use the device of a loaded model. */
  onDeviceLost(reason: string): void;
}

/**
 * Bytes per second and core that the tokenizer endpoints receive and send. A request costs the origin and the
 * Worker more than the tokenizer's own time: on two cores, 20 callers without this limit made gaps of other
 * streams 2.2 times as long.
 */
const TOKENIZER_BYTES_PER_SECOND_AND_CORE = 1_000_000;

const rest = (bytes: number) =>
  sleep((1000 * bytes) / (TOKENIZER_BYTES_PER_SECOND_AND_CORE * availableParallelism()), undefined, {
    ref: false,
  });

/** An evaluation may send a thousand prompts at once. */
const queueLimitOf = (slots: number): number => Math.max(1024, 8 * slots);

/**
 * Loads a model: the tokenizer in this thread, the weights in the engine thread.
 * @throws Error one clear line
 */
export async function loadModel(
  inspected: InspectedModel,
  { log, stallMs, now, onSteps, engineLocks, prefixSecret, onDeviceLost }: LoadHooks,
): Promise<LoadedModel> {
  const { slots, storeBytes, created, contextNote } = inspected;
  const { name, engine: settings } = inspected.settings;
  const { directory } = settings;
  const tokenizer = Tokenizer.of(textsOf(directory), MARKERS);
  const infill = findInfill(tokenizer, settings.infill);
  const data = {
    model: {
      directory,
      variant: settings.variant ?? undefined,
      slots,
      contextLength: inspected.contextLength,
      threads: settings.threads,
      device: settings.device,
      kvLimitBytes: settings.kvMemoryBytes,
      engineLocks,
    },
    tokenBytes: tokenizer.tokenBytes,
    eosIds: tokenizer.eosIds,
    maxWaiting: settings.queueLimit ?? queueLimitOf(slots),
    promptShare: settings.promptShare,
    prefixStoreBytes: storeBytes,
    prefixDisk: prefixDiskOf(name, settings.prefixDisk, prefixSecret),
  };
  const engine = new EngineClient({
    spawn: () => spawnEngineThread(data),
    onSteps,
    stall: { afterMs: stallMs, now },
    onDeath: (reason) => log.error({ model: name, reason }, 'engine died'),
    onFault: oncePerCause((reason) => log.error({ model: name, reason }, 'run failed')),
    onDefect: (trace) => log.error({ model: name, ...trace }, 'failed'),
    onWarning: (message) => log.warn({ model: name }, message),
    onDeviceLost,
  });
  const { contextLength, vocabularySize, imagePositions, summary, warning } = await engine.start();
  if (warning !== null) log.warn({ model: name }, warning);
  if (contextNote !== null) log.info({ model: name }, contextNote);
  log.info({ model: name, slots, contextLength, infill: infill !== null }, summary);
  const images = imagePositions === null ? null : imageInput(directory, tokenizer, imagePositions);
  images?.catch(() => engine.stop());
  const model = {
    id: name,
    created,
    contextLength,
    vocabularySize,
    tokenizer,
    encoder: new Encoder(tokenizer),
    tokenizerThreads: new TokenizerThreads({ parts: tokenizer.parts, background: true }, rest),
    infill,
    images: await images,
  };
  return { model, engine };
}

/** Gives each model a directory of its own: its name as far as a path may have it, and a hash. */
function prefixDiskOf(
  name: string,
  { directory, limitBytes }: PrefixDiskSettings,
  secret: string,
): PrefixDisk | null {
  if (directory === null) return null;
  const folder = `${name.replaceAll(/[^\w-]+/g, '-').slice(0, 40)}-${hash('sha256', name).slice(0, 12)}`;
  return { directory: join(directory, folder), limitBytes, secret };
}

async function imageInput(directory: string, tokenizer: Tokenizer, positions: number): Promise<ImageInput> {
  const { imageTokenId, source } = readModelConfig(textsOf(directory));
  const added = [...tokenizer.addedTokens].find(([, id]) => id === imageTokenId);
  if (added === undefined) {
    throw new Error(
      `${source}: the image token ${imageTokenId} is missing from tokenizer.json's added tokens`,
    );
  }
  const [token, tokenId] = added;
  // Imported on demand, because text models do not need the image library.
  const { ImageReader } = await import('../images/image-reader.ts');
  const reader = new ImageReader(readImageRecipe(directory));
  const read: ImageInput['read'] = async (base64, caller) => {
    const pixels = await reader.read(Buffer.from(base64, 'base64'), caller);
    return { key: hash('sha256', pixels, 'base64'), pixels };
  };
  return { tokenId, token, positions, read };
}

/** Causes that are logged; further ones only appear in /health. */
const MAX_LOGGED = 32;

/** Returns a function that passes on the first message of each cause. Numbers in it may differ. */
export function oncePerCause(log: (message: string) => void): (message: string) => void {
  const logged = new Set<string>();
  return (message) => {
    const cause = message.replaceAll(/\d+/g, '#');
    if (logged.has(cause) || logged.size === MAX_LOGGED) return;
    logged.add(cause);
    log(message);
  };
}
