import { ModelError } from '@continuo/origin/model/config/model-json.ts';
import { errorMessage } from '@continuo/shared/error-details.ts';
import type { DecoderDesign } from '../design/decoder-design.ts';
import {
  type Architecture,
  CONFIG_TENSORS,
  headSizeOf,
  type Moved,
  type RowOrder,
  type StoredTensors,
} from './architecture.ts';
import { type ConvertedTensor, convertedTensors } from './design-tensors.ts';
import type { GgufTensor } from './gguf-header.ts';
import type { GgufKeys } from './gguf-keys.ts';
import { halvesOfPairs, IN_PLACE } from './row-order.ts';

/**
 * How a tensor of Hugging Face's checkpoint is made of the tensors of a file. It is read in units: rows of a
 * weight, single elements of a bias.
 */
export interface TensorRecipe {
  readonly name: string;
  readonly shape: readonly number[];
  /** A recipe among them is a tensor of the file that is transposed first. */
  readonly sources: readonly (GgufTensor | TensorRecipe)[];
  /** Elements of a unit. */
  readonly unitLength: number;
  /** Where a unit comes from. */
  readonly unit: RowOrder;
  /** Where a column comes from; null = in place. */
  readonly column: RowOrder | null;
  /** Undoes what the converter has computed; null = nothing. */
  readonly change: ((value: number) => number) | null;
  /** The sources hold the transposed matrices: `shape` is [.., inputs, outputs], units are the outputs. */
  readonly transposed: boolean;
  /** Set for scalars that are no tensors in the file. */
  readonly values?: readonly number[];
}

/** Kernels of convolutions: stored as [channels, length], in Hugging Face's file as [channels, 1, length]. */
const KERNELS: readonly string[] = ['shortconv.conv', 'ssm_conv1d'];

/** Decays x of states are stored as −eˣ. */
const DECAY = 'ssm_a';

/** Vectors that are stored as matrices in some architectures. */
const VECTORS: readonly string[] = [DECAY, 'ssm_d', 'ssm_norm'];

/** Some weights have a name without an end. */
const STORED_NAME = /^(?:blk\.(\d+)\.)?([\w.]+?)(?:\.(weight|bias|scale))?$/;

interface StoredName {
  readonly layer: string;
  readonly base: string;
  readonly part: 'weight' | 'bias' | 'scale';
}

/** A tensor of a file, and what the design has of it. */
interface Stored {
  readonly name: StoredName;
  readonly tensor: GgufTensor;
  readonly converted: ConvertedTensor;
}

/**
 * Returns the recipes of a model's tensors. Those of layers that the design does not have, such as layers
 * that predict further tokens, keep their names.
 * @throws ModelError that names a tensor which the design does not have
 */
export function recipesOf(
  architecture: Architecture,
  keys: GgufKeys,
  file: ReadonlyMap<string, GgufTensor>,
  { design, stored }: { readonly design: DecoderDesign; readonly stored: StoredTensors },
): TensorRecipe[] {
  const converted = convertedTensors(design);
  const renamed = architecture.renamed?.(stored) ?? {};
  const moved = architecture.moved?.(keys) ?? [];
  const recipes: TensorRecipe[] = scalarRecipes(architecture, keys, converted);
  for (const tensor of file.values()) {
    const name = parseName(tensor.name);
    if (name !== null && CONFIG_TENSORS.has(name.base)) continue;
    // Read together with the first.
    if (name !== null && moved.some(({ from }) => from.indexOf(name.base) > 0)) continue;
    const published =
      name !== null && Number(name.layer) >= design.layers.length
        ? unused(tensor)
        : converted.get(name === null ? '' : placeOf(name, renamed));
    if (name === null || published === undefined) {
      throw new ModelError(
        `tensor ${JSON.stringify(tensor.name)} is unknown for the architecture ${architecture.name}`,
      );
    }
    const rule = moved.find(({ from }) => from[0] === name.base);
    const recipe = plainRecipe(architecture, keys, { name, tensor, converted: published });
    if (rule !== undefined) recipes.push(movedRecipe(recipe, rule, name, file));
    else recipes.push(...(published.isStack ? stackedRecipes(recipe, published.names) : [recipe]));
  }
  return recipes;
}

function parseName(name: string): StoredName | null {
  const [match, layer = '', base = '', part = 'weight'] = STORED_NAME.exec(name) ?? [];
  return match === undefined ? null : { layer, base, part: part as StoredName['part'] };
}

const placeOf = ({ layer, base, part }: StoredName, renamed: Readonly<Record<string, string>>): string =>
  `${layer === '' ? '' : `blk.${layer}.`}${renamed[base] ?? base}.${part}`;

const unused = ({ name }: GgufTensor): ConvertedTensor => ({
  names: [name],
  isStack: false,
  transposed: false,
  offset: 0,
});

function plainRecipe(
  architecture: Architecture,
  keys: GgufKeys,
  { name, tensor, converted }: Stored,
): TensorRecipe {
  const { names, transposed, offset } = converted;
  return {
    name: names[0]!,
    shape: publishedShape(name, tensor, transposed),
    sources: [tensor],
    unitLength: unitLengthOf(tensor, name.part),
    unit: architecture.pairs && ROTATED.includes(name.base) ? halvesOfPairs(headSizeOf(keys)) : IN_PLACE,
    column: null,
    change: changeOf(name, offset),
    transposed,
  };
}

const ROTATED: readonly string[] = ['attn_q', 'attn_k'];

function publishedShape(
  { base, part }: StoredName,
  { shape }: GgufTensor,
  transposed: boolean,
): readonly number[] {
  if (transposed) return turned(shape);
  if (part !== 'weight') return shape;
  if (VECTORS.includes(base)) return [sizeOf(shape)];
  return KERNELS.includes(base) ? [...shape.slice(0, 1), 1, ...shape.slice(1)] : shape;
}

function changeOf({ base, part }: StoredName, offset: 0 | 1): TensorRecipe['change'] {
  if (base === DECAY && part === 'weight') return (value) => Math.log(-value);
  return offset === 0 ? null : (value) => value - offset;
}

const unitLengthOf = ({ shape }: Pick<GgufTensor, 'shape'>, part: StoredName['part']): number =>
  part === 'bias' || shape.length < 2 ? 1 : shape.at(-1)!;

const sizeOf = (shape: readonly number[]) => shape.reduce((product, size) => product * size, 1);

const turned = (shape: readonly number[]) => [...shape.slice(0, -2), ...shape.slice(-2).reverse()];

/** One recipe for each matrix or vector of a stack, such as each expert. @throws ModelError */
function stackedRecipes(recipe: TensorRecipe, names: readonly string[]): TensorRecipe[] {
  const [count = 0, ...shape] = recipe.shape;
  const unitLength = shape.length === 1 ? 1 : recipe.unitLength;
  const units = sizeOf(shape) / unitLength;
  const [{ name }] = recipe.sources as readonly [GgufTensor];
  if (count !== names.length)
    throw new ModelError(`tensor ${JSON.stringify(name)} has ${count} parts in place of ${names.length}`);
  return names.map((name, index) => ({
    ...recipe,
    unitLength,
    name,
    shape,
    unit: (unit) => ({ source: 0, row: index * units + unit }),
  }));
}

function movedRecipe(
  recipe: TensorRecipe,
  { from, rows, columns, turned: isTurned = [], flat = false }: Moved,
  { base, part }: StoredName,
  file: ReadonlyMap<string, GgufTensor>,
): TensorRecipe {
  const first = (recipe.sources as readonly [GgufTensor])[0].name;
  const sources = from.map((name, index) => {
    const tensor = file.get(first.replace(base, name));
    if (tensor === undefined) throw new ModelError(`tensor ${JSON.stringify(first)} needs one named ${name}`);
    if (!isTurned[index]) return tensor;
    const unitLength = unitLengthOf(tensor, part);
    return { ...recipe, sources: [tensor], shape: turned(tensor.shape), unitLength, transposed: true };
  });
  const unitLength = unitLengthOf(sources[0]!, part);
  const isSame = sources.every((source) => unitLengthOf(source, part) === unitLength);
  const counts = sources.map(({ shape }) => sizeOf(shape) / unitLength);
  try {
    if (!isSame) throw new ModelError(`needs as many columns in ${from.join(' and ')}`);
    return {
      ...recipe,
      sources,
      unitLength,
      shape: from.length === 1 ? recipe.shape : joinedShape(sources, part, flat, recipe.transposed),
      unit: rows?.(counts) ?? recipe.unit,
      column: columns?.([unitLength]) ?? null,
    };
  } catch (error) {
    throw new ModelError(`tensor ${JSON.stringify(first)} ${errorMessage(error)}`);
  }
}

function joinedShape(
  sources: readonly { readonly shape: readonly number[] }[],
  part: StoredName['part'],
  flat: boolean,
  transposed: boolean,
): readonly number[] {
  const [{ shape }] = sources as readonly [(typeof sources)[number]];
  const inner = part === 'bias' ? [] : shape.slice(-1);
  const leading = flat ? [] : shape.slice(0, -1 - inner.length);
  const values = sources.reduce((sum, source) => sum + sizeOf(source.shape), 0);
  const joined = [...leading, values / sizeOf([...leading, ...inner]), ...inner];
  return transposed ? turned(joined) : joined;
}

function scalarRecipes(
  { scalars = [] }: Architecture,
  keys: GgufKeys,
  converted: ReadonlyMap<string, ConvertedTensor>,
): TensorRecipe[] {
  const layers = keys.number('block_count');
  return scalars.flatMap((key) => {
    const values = keys.list(key) ?? [];
    if (values.length !== layers) throw keys.fault(key, `a list of ${layers} numbers`);
    return values.map((value, layer) => ({
      name: converted.get(`blk.${layer}.${key}.weight`)!.names[0]!,
      shape: [1],
      sources: [],
      unitLength: 1,
      unit: IN_PLACE,
      column: null,
      change: null,
      transposed: false,
      values: [value],
    }));
  });
}
