import { type Tie, withAdapter } from './checkpoint/adapter.ts';
import type { Checkpoint } from './checkpoint/checkpoint.ts';
import { openSafetensors } from './checkpoint/safetensors.ts';
import { describeFamily } from './families/families.ts';
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
    const { tied, tie } = withTiedHead(checkpoint);
    return await withAdapter(tied, adapter, tie);
  } catch (error) {
    await checkpoint.close();
    throw error;
  }
}

/** Gives a head that is tied to the embedding a tensor of its own: an adapter may change one only. */
function withTiedHead(checkpoint: Checkpoint): { readonly tied: Checkpoint; readonly tie: Tie | null } {
  const { config, tensors, source, files } = checkpoint;
  const { design, storedName } = describeFamily(config, tensors);
  const embedding = storedName(design.embedding[0]!.tensor);
  const head = storedName(design.separateHead[0]!.tensor);
  const shared = tensors.get(embedding);
  const isTied = design.head.weight !== design.separateHead && !tensors.has(head);
  if (!isTied || shared === undefined) return { tied: checkpoint, tie: null };
  const stored = (name: string) => (name === head ? embedding : name);
  const tied: Checkpoint = {
    config,
    source,
    files,
    tensors: new Map(tensors).set(head, { ...shared, name: head }),
    readRows: (name, first, count) => checkpoint.readRows(stored(name), first, count),
    readBlocks: (name, first, count) => checkpoint.readBlocks(stored(name), first, count),
    close: () => checkpoint.close(),
  };
  return { tied, tie: [embedding, head] };
}
