import { withAdapter } from './checkpoint/adapter.ts';
import type { Checkpoint } from './checkpoint/checkpoint.ts';
import { openSafetensors } from './checkpoint/safetensors.ts';
import { openGguf } from './gguf/gguf-checkpoint.ts';

/**
 * Opens weights of either format.
 * @param source directory with config.json and safetensors, or the first .gguf file
 * @param adapter directory of a LoRA adapter that is merged as the weights are read
 * @throws ModelError
 */
export async function openCheckpoint(source: string, adapter?: string): Promise<Checkpoint> {
  const isGguf = source.toLowerCase().endsWith('.gguf');
  const checkpoint = isGguf ? openGguf(source) : await openSafetensors(source);
  if (adapter === undefined) return checkpoint;
  try {
    return await withAdapter(checkpoint, adapter);
  } catch (error) {
    await checkpoint.close();
    throw error;
  }
}
