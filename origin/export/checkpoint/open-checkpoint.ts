import { ModelError } from '../../model/config/model-json.ts';
import type { Checkpoint } from './checkpoint.ts';
import { openSafetensors } from './safetensors.ts';

/**
 * Opens weights of either format.
 * @param source directory with config.json and safetensors, or the first .gguf file
 * @throws ModelError
 */
export async function openCheckpoint(source: string): Promise<Checkpoint> {
  if (source.toLowerCase().endsWith('.gguf')) throw new ModelError('GGUF files are not supported yet');
  return await openSafetensors(source);
}
