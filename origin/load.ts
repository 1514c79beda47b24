import { statSync } from 'node:fs';
import { join } from 'node:path';
import { EngineClient, spawnEngineThread } from './engine/engine-client.ts';
import type { StepReport } from './engine/messages.ts';
import { MARKERS } from './infill/families.ts';
import { findInfill } from './infill/infill.ts';
import type { Logger } from './log.ts';
import { findDecoder } from './model/model-files.ts';
import type { ModelSettings } from './model-settings.ts';
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
  { name, engine: settings }: ModelSettings,
  { log, onSteps }: LoadHooks,
): Promise<{ readonly model: ServedModel; readonly engine: EngineClient }> {
  const { directory } = settings;
  const variant = settings.variant ?? undefined;
  const tokenizer = Tokenizer.fromDirectory(directory, MARKERS);
  const infill = findInfill(tokenizer, settings.infill);
  const data = {
    model: {
      directory,
      variant,
      slots: settings.slots,
      contextLength: settings.contextLength ?? undefined,
      threads: settings.threads,
      device: settings.device,
      kvLimitBytes: settings.kvMemoryBytes,
    },
    tokenBytes: tokenizer.tokenBytes,
    eosIds: tokenizer.eosIds,
    maxWaiting: settings.queueLimit,
    shortcuts: settings.shortcuts,
  };
  const engine = new EngineClient({
    spawn: () => spawnEngineThread(data),
    onSteps,
    onDeath: (reason) => log.error({ reason }, 'engine died'),
  });
  const { slots, contextLength, vocabularySize, summary, warning } = await engine.start();
  if (warning !== null) log.warn({ model: name }, warning);
  log.info({ model: name, slots, contextLength, infill: infill !== null }, summary);
  const model = {
    id: name,
    created: Math.floor(statSync(join(directory, findDecoder(directory, variant).file)).mtimeMs / 1000),
    contextLength,
    vocabularySize,
    tokenizer,
    encoder: new Encoder(tokenizer, { directory, markers: MARKERS }),
    infill,
  };
  return { model, engine };
}
