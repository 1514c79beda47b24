import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { OriginConfig } from './config.ts';
import { EngineClient, spawnEngineThread } from './engine/engine-client.ts';
import type { StepReport } from './engine/messages.ts';
import { MARKERS } from './infill/families.ts';
import { findInfill } from './infill/infill.ts';
import type { Logger } from './log.ts';
import { findDecoder } from './model/model-files.ts';
import type { ServedModel } from './served-model.ts';
import { Encoder } from './tokenizer/encoder.ts';
import { Tokenizer } from './tokenizer/tokenizer.ts';

export interface LoadHooks {
  readonly log: Logger;
  onSteps(reports: readonly StepReport[]): void;
}

/**
 * Opens the model directory: tokenizer here, weights in the engine thread.
 * @throws Error one clear line
 */
export async function load(
  config: OriginConfig,
  { log, onSteps }: LoadHooks,
): Promise<{ readonly model: ServedModel; readonly engine: EngineClient }> {
  const { modelDirectory: directory } = config;
  const variant = config.modelVariant ?? undefined;
  const tokenizer = Tokenizer.fromDirectory(directory, MARKERS);
  const infill = findInfill(tokenizer, config.infill);
  const data = {
    model: {
      directory,
      variant,
      slots: config.slots,
      contextLength: config.contextLength ?? undefined,
      threads: config.threads,
      kvLimitBytes: config.kvMemoryBytes ?? process.availableMemory(),
    },
    tokenBytes: tokenizer.tokenBytes,
    eosIds: tokenizer.eosIds,
    maxWaiting: config.queueLimit,
    shortcuts: config.shortcuts,
  };
  const engine = new EngineClient({
    spawn: () => spawnEngineThread(data),
    onSteps,
    onDeath: (reason) => log.error({ reason }, 'engine died'),
  });
  const { slots, contextLength, vocabularySize, summary } = await engine.start();
  log.info({ model: config.modelName, slots, contextLength, infill: infill !== null }, summary);
  const model = {
    id: config.modelName,
    created: Math.floor(statSync(join(directory, findDecoder(directory, variant).file)).mtimeMs / 1000),
    contextLength,
    vocabularySize,
    tokenizer,
    encoder: new Encoder(tokenizer, { directory, markers: MARKERS }),
    infill,
  };
  return { model, engine };
}
