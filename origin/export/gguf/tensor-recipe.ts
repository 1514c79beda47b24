import { ModelError } from '@continuo/origin/model/config/model-json.ts';
import {
  type Architecture,
  CONFIG_TENSORS,
  readSizes,
  type StoredTensors,
  type TensorName,
} from './architecture.ts';
import type { GgufTensor } from './gguf-header.ts';
import type { GgufKeys } from './gguf-keys.ts';

/**
 * How a tensor of Hugging Face's checkpoint is made of the tensors of a file. It is read in units: rows of a
 * weight, single elements of a bias.
 */
export interface TensorRecipe {
  readonly name: string;
  readonly shape: readonly number[];
  readonly sources: readonly GgufTensor[];
  /** Elements of a unit. */
  readonly unitLength: number;
  /** Where a unit comes from. */
  readonly unit: (index: number) => SourceUnit;
  /** Added to every element. */
  readonly added: number;
  /** The sources hold the transposed matrices: `shape` is [.., inputs, outputs], units are the outputs. */
  readonly transposed: boolean;
  /** Set for scalars that are no tensors in the file. */
  readonly values?: readonly number[];
}

interface SourceUnit {
  /** Index in `sources`. */
  readonly source: number;
  readonly unit: number;
}

type UnitOrder = (unit: number) => SourceUnit;

const IN_PLACE: UnitOrder = (unit) => ({ source: 0, unit });

/** Queries and keys whose rotated pairs are side by side: Hugging Face's halves of each head. */
const halvesOfPairs =
  (headSize: number): UnitOrder =>
  (unit) => {
    const index = unit % headSize;
    const pair = index % (headSize / 2);
    return { source: 0, unit: unit - index + 2 * pair + (index < headSize / 2 ? 0 : 1) };
  };

/** All queries, all keys, all values: Hugging Face's groups of a KV head's queries, its key and its value. */
const groupsOfHeads =
  ({ heads, kvHeads, headSize }: { heads: number; kvHeads: number; headSize: number }): UnitOrder =>
  (unit) => {
    const queries = heads / kvHeads;
    const row = Math.floor(unit / headSize);
    const group = Math.floor(row / (queries + 2));
    const place = row % (queries + 2);
    const head = place < queries ? group * queries + place : heads + kvHeads * (place - queries) + group;
    return { source: 0, unit: head * headSize + (unit % headSize) };
  };

/** Two stacks of matrices of `height` units: those of each pair of matrices after each other or in turn. */
const pairsOfMatrices =
  (height: number, order: 'after' | 'alternating'): UnitOrder =>
  (unit) => {
    const matrix = Math.floor(unit / (2 * height));
    const place = unit % (2 * height);
    const source = order === 'after' ? Math.floor(place / height) : place % 2;
    const within = order === 'after' ? place % height : Math.floor(place / 2);
    return { source, unit: matrix * height + within };
  };

const STORED_NAME = /^(?:blk\.(\d+)\.)?([\w.]+)\.(weight|bias|scale)$/;

interface StoredName {
  readonly layer: string;
  readonly base: string;
  readonly part: 'weight' | 'bias' | 'scale';
}

/**
 * Returns the recipes of a model's tensors.
 * @throws ModelError that names a tensor which the architecture does not have
 */
export function recipesOf(
  architecture: Architecture,
  keys: GgufKeys,
  file: ReadonlyMap<string, GgufTensor>,
  tensors: StoredTensors,
): TensorRecipe[] {
  const names = typeof architecture.names === 'function' ? architecture.names(tensors) : architecture.names;
  const recipes: TensorRecipe[] = scalarRecipes(architecture, keys);
  for (const tensor of file.values()) {
    const stored = parseName(tensor.name);
    if (stored !== null && CONFIG_TENSORS.has(stored.base)) continue;
    const [first, second] = architecture.merged?.from ?? [];
    if (stored !== null && stored.base === second) continue; // together with the first
    const name = stored?.base === first ? architecture.merged?.name : names[stored?.base ?? ''];
    if (stored === null || name === undefined) {
      throw new ModelError(
        `tensor ${JSON.stringify(tensor.name)} is unknown for the architecture ${architecture.name}`,
      );
    }
    if (stored.base === first) recipes.push(mergedRecipe(architecture, stored, tensor, file));
    else recipes.push(...plainRecipes(architecture, keys, { stored, name, tensor }));
  }
  return recipes;
}

function parseName(name: string): StoredName | null {
  const [match, layer = '', base = '', part] = STORED_NAME.exec(name) ?? [];
  return match === undefined ? null : { layer, base, part: part as StoredName['part'] };
}

/** Fills in the layer; a second `*` stays. */
function nameOf(name: TensorName, { layer, part }: StoredName): string {
  const published = typeof name === 'string' ? `${name}.${part}` : name[part];
  if (published === undefined) throw new ModelError(`a ${part} is unknown for ${JSON.stringify(name)}`);
  return published.replace('*', layer);
}

function plainRecipes(
  architecture: Architecture,
  keys: GgufKeys,
  { stored, name, tensor }: { stored: StoredName; name: TensorName; tensor: GgufTensor },
): TensorRecipe[] {
  const transposed = stored.part === 'weight' && (architecture.transposed ?? []).includes(stored.base);
  const shape = publishedShape(architecture, stored, tensor, transposed);
  const recipe: TensorRecipe = {
    name: nameOf(name, stored),
    shape,
    sources: [tensor],
    unitLength: unitLengthOf(tensor, stored),
    unit: orderOf(architecture, keys, stored),
    added: architecture.shiftedNorms && stored.base.endsWith('norm') && stored.part === 'weight' ? -1 : 0,
    transposed,
  };
  return recipe.name.includes('*') ? stackedRecipes(recipe) : [recipe];
}

function publishedShape(
  { kernels = [] }: Architecture,
  { base, part }: StoredName,
  { shape }: GgufTensor,
  transposed: boolean,
): readonly number[] {
  if (transposed) return [...shape.slice(0, -2), ...shape.slice(-2).reverse()];
  return part === 'weight' && kernels.includes(base) ? [...shape.slice(0, 1), 1, ...shape.slice(1)] : shape;
}

const unitLengthOf = ({ shape }: GgufTensor, { part }: StoredName): number =>
  part === 'bias' || shape.length < 2 ? 1 : shape.at(-1)!;

function orderOf(architecture: Architecture, keys: GgufKeys, { base }: StoredName): UnitOrder {
  const isRotated = base === 'attn_q' || base === 'attn_k';
  if (architecture.pairs && isRotated) return halvesOfPairs(readSizes(keys).headSize);
  if (architecture.grouped && base === 'attn_qkv') return groupsOfHeads(readSizes(keys));
  return IN_PLACE;
}

/** One recipe for each matrix or vector of a stack, such as each expert. */
function stackedRecipes(recipe: TensorRecipe): TensorRecipe[] {
  const [count = 0, ...shape] = recipe.shape;
  const unitLength = shape.length === 1 ? 1 : recipe.unitLength;
  const units = shape.reduce((product, size) => product * size, 1) / unitLength;
  return Array.from({ length: count }, (_, index) => ({
    ...recipe,
    unitLength,
    name: recipe.name.replace('*', String(index)),
    shape,
    unit: (unit) => ({ source: 0, unit: index * units + unit }),
  }));
}

function mergedRecipe(
  { merged, name: architecture }: Architecture,
  stored: StoredName,
  first: GgufTensor,
  file: ReadonlyMap<string, GgufTensor>,
): TensorRecipe {
  const { name, from, order, transposed = false } = merged!;
  const second = file.get(first.name.replace(from[0], from[1]));
  if (second === undefined || String(second.shape) !== String(first.shape)) {
    throw new ModelError(
      `tensor ${JSON.stringify(first.name)} needs one of the same shape named ${from[1]} in ${architecture}`,
    );
  }
  const isWeight = stored.part === 'weight';
  const [matrices = 0, height = 0, ...rest] = first.shape;
  const turned = isWeight && transposed ? [matrices, ...rest, 2 * height] : [matrices, 2 * height, ...rest];
  return {
    name: nameOf(name, stored),
    shape: turned,
    sources: [first, second],
    unitLength: unitLengthOf(first, stored),
    unit: pairsOfMatrices(height, order),
    added: 0,
    transposed: isWeight && transposed,
  };
}

function scalarRecipes({ scalars = {} }: Architecture, keys: GgufKeys): TensorRecipe[] {
  const layers = keys.number('block_count');
  return Object.entries(scalars).flatMap(([name, key]) => {
    const values = keys.list(key) ?? [];
    if (values.length !== layers) throw keys.fault(key, `a list of ${layers} numbers`);
    return values.map((value, layer) => ({
      name: name.replace('*', String(layer)),
      shape: [1],
      sources: [],
      unitLength: 1,
      unit: IN_PLACE,
      added: 0,
      transposed: false,
      values: [value],
    }));
  });
}
