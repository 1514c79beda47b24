import { textsOf } from '@continuo/origin/model/config/model-directory.ts';
import { ModelError, readModelJson } from '@continuo/origin/model/config/model-json.ts';
import * as z from 'zod';
import { type Checkpoint, type CheckpointTensor, columnsOf, rowsOf } from './checkpoint.ts';
import { turnedRows } from './matrix.ts';
import { openSafetensorsFile } from './safetensors.ts';

/** Merges a LoRA adapter, as PEFT saves it, into a checkpoint while its rows are read: W + scale · B · A. */

const CONFIG = 'adapter_config.json';
const WEIGHTS = 'adapter_model.safetensors';
/** What PEFT puts before the names of the base model. */
const WRAPPER = 'base_model.model.';

const off = z.union([z.literal(false), z.null(), z.array(z.never()), z.object({}).strict()]).optional();

const configSchema = z.object({
  peft_type: z.literal('LORA'),
  lora_alpha: z.number(),
  use_rslora: z.boolean().default(false),
  fan_in_fan_out: z.boolean().default(false),
  modules_to_save: z.array(z.string()).nullish(),
  alpha_pattern: z.record(z.string(), z.number()).nullish(),
  use_dora: off,
  lora_bias: off,
  target_parameters: off,
  trainable_token_indices: off,
  use_qalora: off,
  alora_invocation_tokens: off,
});

/** A low-rank change of one tensor: row i gains scale · Σ left[i, r] · right[r, ·]. */
interface Change {
  readonly scale: number;
  readonly rank: number;
  /** [rows, rank] */
  readonly left: Float32Array;
  /** [rank, columns] */
  readonly right: Float32Array;
}

/** Names of the embedding and of the head that shares its values; the checkpoint has a tensor for each. */
export type Tie = readonly [embedding: string, head: string];

/**
 * Opens the checkpoint with an adapter merged into it. Closing it closes the checkpoint. As in PEFT, the ends
 * of a tie share the base weight, and what the adapter adds to one of them does not reach the other.
 * @param tie null = the head has its own values
 * @throws ModelError if the adapter is of another kind, or changes tensors that the checkpoint lacks
 */
export async function withAdapter(
  checkpoint: Checkpoint,
  directory: string,
  tie: Tie | null = null,
): Promise<Checkpoint> {
  const config = readModelJson(textsOf(directory), CONFIG, configSchema);
  if (config === undefined) throw new ModelError(`${directory} has no ${CONFIG}`);
  const adapter = await openSafetensorsFile(directory, WEIGHTS);
  try {
    return await merge(checkpoint, adapter, config, tie);
  } finally {
    await adapter.close();
  }
}

async function merge(
  checkpoint: Checkpoint,
  adapter: Checkpoint,
  config: z.infer<typeof configSchema>,
  tie: Tie | null,
): Promise<Checkpoint> {
  const changes = new Map<string, Change>();
  const bases = new Map<string, Float32Array>();
  const saved = new Map<string, Float32Array>();
  const tensors = new Map(checkpoint.tensors);
  for (const tensor of adapter.tensors.values()) {
    const { module, role } = partsOf(tensor.name, config);
    if (role === 'second') continue;
    const name = targetOf(checkpoint, tensor.name, module, role);
    const base = checkpoint.tensors.get(name)!;
    const ends = role === 'base' && tie?.includes(name) ? tie : [name];
    if (role === 'base' || role === 'saved') {
      requireShape(adapter, tensor, base.shape);
      const values = await adapter.readRows(tensor.name, 0, rowsOf(tensor));
      for (const end of ends) (role === 'base' ? bases : saved).set(end, values);
    } else changes.set(name, await readChange(adapter, tensor, base, config, module));
    for (const end of ends) tensors.set(end, { ...tensors.get(end)!, blocks: null });
  }
  const isChanged = (name: string) => [changes, bases, saved].some((map) => map.has(name));
  if (tie !== null && !tie.some(isChanged)) tensors.delete(tie[1]);
  return {
    config: checkpoint.config,
    files: checkpoint.files,
    tensors,
    source: `${checkpoint.source} with ${adapter.source}`,
    readRows: async (name, first, count) => {
      const columns = columnsOf(tensors.get(name) ?? { shape: [] });
      // PEFT saves an embedding whole beside its factors.
      const whole = saved.get(name) ?? bases.get(name);
      const kept = whole?.slice(first * columns, (first + count) * columns);
      const rows = kept ?? (await checkpoint.readRows(name, first, count));
      const change = changes.get(name);
      if (change !== undefined) addRows(rows, change, first, columns);
      return rows;
    },
    readBlocks: (name, first, count) => checkpoint.readBlocks(name, first, count),
    close: () => checkpoint.close(),
  };
}

/** `base`: the base model's own weight, which PEFT saves beside factors. `saved`: what replaces it. */
type Role = 'linear' | 'embedding' | 'second' | 'base' | 'saved';

/** The module that a tensor of the adapter belongs to. The second factor is read with the first one. */
function partsOf(
  name: string,
  { modules_to_save }: z.infer<typeof configSchema>,
): { readonly module: string; readonly role: Role } {
  const inner = name.startsWith(WRAPPER) ? name.slice(WRAPPER.length) : name;
  const match = /^(.*)\.lora_(embedding_)?([AB])(?:\.default)?(?:\.weight)?$/.exec(inner);
  if (match !== null) {
    const role = match[3] === 'B' ? 'second' : match[2] === undefined ? 'linear' : 'embedding';
    return { module: match[1]!, role };
  }
  const [, before, wrapper, after] =
    /^(.*)\.(base_layer|original_module|modules_to_save(?:\.default)?)(\..*)$/.exec(inner) ?? [];
  if (wrapper !== undefined) {
    return { module: `${before}${after}`, role: wrapper.startsWith('modules_to_save') ? 'saved' : 'base' };
  }
  const owner = inner.replace(/\.\w+$/, '');
  const replaces =
    modules_to_save?.some((module) => owner === module || owner.endsWith(`.${module}`)) ?? false;
  return { module: inner, role: replaces ? 'saved' : 'base' };
}

function targetOf(checkpoint: Checkpoint, tensor: string, module: string, role: Role): string {
  const name = role === 'saved' || role === 'base' ? module : `${module}.weight`;
  const candidates = [name, `model.${name}`, name.replace(/^(model|transformer)\./, '')];
  const changed = candidates.find((candidate) => checkpoint.tensors.has(candidate));
  if (changed !== undefined) return changed;
  throw new ModelError(`${WEIGHTS}: tensor ${tensor} changes ${name}, which ${checkpoint.source} has not`);
}

async function readChange(
  adapter: Checkpoint,
  first: CheckpointTensor,
  base: CheckpointTensor,
  config: z.infer<typeof configSchema>,
  module: string,
): Promise<Change> {
  const isEmbedding = first.name.includes('lora_embedding_A');
  const second = adapter.tensors.get(first.name.replace(/lora_(embedding_)?A/, 'lora_$1B'));
  if (second === undefined) throw new ModelError(`${WEIGHTS} has ${first.name} without its lora_B`);
  const rank = rowsOf(first);
  const a = await adapter.readRows(first.name, 0, rank);
  const b = await adapter.readRows(second.name, 0, rowsOf(second));
  // A·x is [rank, inputs]: rows of an embedding, and of matrices stored as [inputs, outputs], are inputs.
  const inputRows = isEmbedding || config.fan_in_fan_out;
  const [rows, columns] = inputRows ? [columnsOf(first), rowsOf(second)] : [rowsOf(second), columnsOf(first)];
  if (columnsOf(second) !== rank || base.shape.join() !== `${rows},${columns}`) {
    const shapes = `[${first.shape.join(', ')}] and [${second.shape.join(', ')}]`;
    throw new ModelError(
      `${WEIGHTS}: ${first.name} and its lora_B are ${shapes}, but ${base.name} is [${base.shape.join(', ')}]`,
    );
  }
  const alpha = alphaOf(config, module);
  const scale = alpha / (config.use_rslora ? Math.sqrt(rank) : rank);
  return inputRows
    ? { scale, rank, left: turnedRows(a, rows, 0, rows), right: turnedRows(b, rank, 0, rank) }
    : { scale, rank, left: b, right: a };
}

/**
 * alpha_pattern has ends of module names. PEFT reads them as regular expressions; those of an adapter are not
 * trusted.
 */
function alphaOf({ alpha_pattern, lora_alpha }: z.infer<typeof configSchema>, module: string): number {
  for (const [key, alpha] of Object.entries(alpha_pattern ?? {})) {
    const name = key.replace(/^\^/, '').replaceAll('\\.', '.');
    if (!/^[\w.]+$/.test(name)) {
      throw new ModelError(
        `${CONFIG}: alpha_pattern has ${JSON.stringify(key)}; supported are names of modules`,
      );
    }
    if (module === name || (!key.startsWith('^') && module.endsWith(`.${name}`))) return alpha;
  }
  return lora_alpha;
}

function requireShape(
  adapter: Checkpoint,
  { name, shape }: CheckpointTensor,
  needed: readonly number[],
): void {
  if (shape.join() === needed.join()) return;
  throw new ModelError(
    `${adapter.source}: tensor ${name} is [${shape.join(', ')}], but the base model's is [${needed.join(', ')}]; a changed vocabulary is not supported`,
  );
}

function addRows(
  rows: Float32Array,
  { scale, rank, left, right }: Change,
  first: number,
  columns: number,
): void {
  const count = rows.length / columns;
  for (let row = 0; row < count; row++) {
    for (let r = 0; r < rank; r++) {
      const factor = scale * left[(first + row) * rank + r]!;
      for (let column = 0; column < columns; column++) {
        rows[row * columns + column]! += factor * right[r * columns + column]!;
      }
    }
  }
}
