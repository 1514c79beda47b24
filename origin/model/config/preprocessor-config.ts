import * as z from 'zod';
import { textsOf } from './model-directory.ts';
import { count, ModelError, readModelJson } from './model-json.ts';

/** Reads preprocessor_config.json: how an image is prepared for the model's encoder. */

const PREPROCESSOR_CONFIG = 'preprocessor_config.json';

/** Resampling filters, indexed by Pillow's numbers. */
const KERNELS = ['nearest', 'lanczos', 'bilinear', 'bicubic'] as const;
export type Kernel = (typeof KERNELS)[number];

type Triple = readonly [red: number, green: number, blue: number];

export interface ImageRecipe {
  /** Null = images keep their size. */
  readonly resize: {
    readonly kernel: Kernel;
    /** Length of the shortest edge, keeping proportions; or both edges. */
    readonly size: number | { readonly height: number; readonly width: number };
  } | null;
  /** Output size; a larger image is cropped at its centre. */
  readonly height: number;
  readonly width: number;
  /** A level 0 … 255 becomes (level · factor − mean) / deviation, per channel. */
  readonly factor: number;
  readonly mean: Triple;
  readonly deviation: Triple;
}

const edges = z.object({ height: count, width: count });
const size = z.union([count, edges, z.object({ shortest_edge: count })]);
const triple = (value: z.ZodNumber) => z.tuple([value, value, value]);
const flag = z.boolean().nullish();

const schema = z.looseObject({
  do_convert_rgb: flag,
  do_resize: flag,
  size: size.nullish(),
  resample: z.int().min(0).max(3, 'only 0 (nearest), 1 (Lanczos), 2 (bilinear) and 3 (bicubic)').nullish(),
  do_center_crop: flag,
  crop_size: z.union([count, edges]).nullish(),
  do_rescale: flag,
  rescale_factor: z.number().positive().nullish(),
  do_normalize: flag,
  image_mean: triple(z.number()).nullish(),
  image_std: triple(z.number().positive()).nullish(),
});
type Preprocessor = z.infer<typeof schema>;

const STEPS: ReadonlySet<string> = new Set(Object.keys(schema.shape));
/** Fields that require several encoder runs per image. */
const SPLITTING = ['image_grid_pinpoints', 'min_pixels', 'max_pixels'];

/** @throws ModelError if the file is missing, contradictory, or needs an unsupported step */
export function readImageRecipe(directory: string): ImageRecipe {
  const config = readModelJson(textsOf(directory), PREPROCESSOR_CONFIG, schema);
  if (config === undefined) throw new ModelError(`${directory} has no ${PREPROCESSOR_CONFIG}`);
  const unknown = Object.entries(config).find(
    ([name, value]) =>
      (/^do_/.test(name) && value === true && !STEPS.has(name)) ||
      (SPLITTING.includes(name) && value !== null),
  );
  if (unknown !== undefined) throw fault(`${unknown[0]} is not supported`);
  const crop = cropOf(config);
  const resize = resizeOf(config, crop !== null);
  const exact = resize !== null && typeof resize.size === 'object' ? resize.size : null;
  const { height, width } = crop ?? exact ?? varying();
  const normalizes = config.do_normalize ?? true;
  if (normalizes && !(config.image_mean && config.image_std))
    throw fault('image_mean or image_std is missing');
  return {
    resize,
    height,
    width,
    factor: (config.do_rescale ?? true) ? (config.rescale_factor ?? 1 / 255) : 1,
    mean: (normalizes && config.image_mean) || [0, 0, 0],
    deviation: (normalizes && config.image_std) || [1, 1, 1],
  };
}

const fault = (what: string) => new ModelError(`${PREPROCESSOR_CONFIG}: ${what}`);

function varying(): never {
  throw fault('images of varying size are not supported: neither crop_size nor size gives height and width');
}

function cropOf({ do_center_crop, crop_size }: Preprocessor): { height: number; width: number } | null {
  if (!(do_center_crop ?? Boolean(crop_size))) return null;
  if (!crop_size) throw fault('crop_size is missing');
  return typeof crop_size === 'number' ? { height: crop_size, width: crop_size } : crop_size;
}

/** A bare number is the shortest edge if the image is cropped afterwards, otherwise both edges. */
function resizeOf({ do_resize, size, resample }: Preprocessor, crops: boolean): ImageRecipe['resize'] {
  if (do_resize === false) return null;
  if (!size) throw fault('size is missing');
  const kernel = KERNELS[resample ?? -1];
  if (kernel === undefined) throw fault('resample is missing');
  if (typeof size === 'number') return { kernel, size: crops ? size : { height: size, width: size } };
  return { kernel, size: 'shortest_edge' in size ? size.shortest_edge : size };
}
