import type { EngineClient } from '../engine/engine-client.ts';
import type { ServedModel } from '../request/served-model.ts';

/** The engine as the HTTP side uses it. */
export type EngineAccess = Pick<EngineClient, 'status' | 'lastFault' | 'submit' | 'abort' | 'stop'>;

/** A model and the engine that runs it. */
export interface LoadedModel {
  readonly model: ServedModel;
  readonly engine: EngineAccess;
}
