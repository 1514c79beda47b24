import { messageOf } from '../../shared/message-of.ts';
import { EngineStartError } from '../engine/engine-client.ts';

/** Why a load failed. */
export interface LoadFault {
  /** One line. */
  readonly message: string;
  /** It would fail again: the directory is at fault. */
  readonly permanent: boolean;
}

/** What is wrong before the engine is even started is wrong with the directory's files. */
export function loadFaultOf(error: unknown): LoadFault {
  const message = messageOf(error);
  return { message, permanent: !(error instanceof EngineStartError) || error.permanent };
}
