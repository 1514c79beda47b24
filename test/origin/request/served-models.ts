import type { ModelSettings } from '../../../origin/config/model-settings.ts';
import { MARKERS } from '../../../origin/infill/families.ts';
import { findInfill } from '../../../origin/infill/infill.ts';
import { textsOf } from '../../../origin/model/config/model-directory.ts';
import type { HostedModel } from '../../../origin/request/hosted-model.ts';
import { prepareGeneration } from '../../../origin/request/prepare.ts';
import type { ServedModel } from '../../../origin/request/served-model.ts';
import type { InspectedModel } from '../../../origin/serving/inspect-model.ts';
import { Encoder } from '../../../origin/tokenizer/encoder.ts';
import { Tokenizer } from '../../../origin/tokenizer/tokenizer.ts';
import { TokenizerThreads } from '../../../origin/tokenizer/tokenizer-thread.ts';
import type { GenerationRequest } from '../../../shared/generation.ts';
import { request } from '../../support/generation-request.ts';
import { inspectedModel, settingsOf } from '../serving/inspected-model.ts';

/** The signal of a client that does not disconnect. */
export const STAYS = new AbortController().signal;

/** Prepares a plain request with the given changes for the engine. */
export const prepare = (
  changes: Partial<GenerationRequest>,
  model: ServedModel,
  context: Partial<Parameters<typeof prepareGeneration>[1]> = {},
) =>
  prepareGeneration(request(changes), {
    model,
    engineId: 'engine-1',
    receivedAt: 0,
    signal: STAYS,
    drawSeed: () => 1,
    ...context,
  });

export function servedModel(directory: string, contextLength = 64): HostedModel {
  const tokenizer = Tokenizer.of(textsOf(directory), MARKERS);
  return {
    id: 'tiny',
    created: 1_700_000_000,
    contextLength,
    vocabularySize: tokenizer.tokenBytes.vocabularySize,
    tokenizer,
    encoder: new Encoder(tokenizer),
    tokenizerThreads: new TokenizerThreads({ parts: tokenizer.parts, background: true }),
    infill: findInfill(tokenizer, 'auto'),
    images: null,
  };
}

/** Returns the result of the model's inspection. By default it is loaded at the start and has no aliases. */
export function inspected(
  { id, created, contextLength, vocabularySize, infill }: ServedModel,
  settings: Partial<ModelSettings> = {},
): InspectedModel {
  return inspectedModel(
    { ...settingsOf(id), ...settings },
    { created, contextLength, vocabularySize, infill: infill !== null },
  );
}
