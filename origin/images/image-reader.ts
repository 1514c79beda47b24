import sharp, { type Sharp } from 'sharp';
import { type Caller, Turns } from '../fair-mutex.ts';
import type { ImageRecipe, Kernel } from '../model/config/preprocessor-config.ts';
import { rgbOfInks } from './cmyk.ts';
import { ImageFault } from './image-fault.ts';

/** Pixels of the largest image, before and after resizing: 100 MB of RGB. A few kilobytes can claim any number. */
const MOST_PIXELS = 2 ** 25;
const MOST_SECONDS = 10;
const CHANNELS = 3;
const INKS = 4;

/** All that is decoded. SVG is left out on purpose: it can refer to other files and has no size of its own. */
const LOADERS = ['Jpeg', 'Png', 'Webp', 'Nsgif'].map((name) => `VipsForeignLoad${name}`);
const NAMES = 'JPEG, PNG, WebP or GIF';

const SHARP_KERNELS = {
  nearest: 'nearest',
  lanczos: 'lanczos3',
  bilinear: 'linear',
  bicubic: 'cubic',
} as const;

interface Rgb {
  readonly data: Buffer;
  readonly width: number;
  readonly height: number;
}

/**
 * Turns an encoded image into what a model's vision encoder reads, as transformers' image processors do: the first
 * frame, turned as EXIF says, as RGB (alpha dropped, grey tripled, inks as light, 16 bits cut to 8), resized, its middle
 * cut out with black around it where it is too small, scaled and normalised.
 *
 * All is exact but the resizing, for which libvips has the kernels that Pillow has. Reduced, levels are within 3 of
 * Pillow's algorithm in doubles, most equal. Enlarged, the picture is displaced by a quarter to a half of one of its
 * old pixels, and Lanczos is bicubic. Colour profiles are ignored, as Pillow ignores them. What is transparent in a GIF is
 * black, whatever colour Pillow would find there.
 */
export class ImageReader {
  readonly #recipe: ImageRecipe;
  /** [channel, level] */
  readonly #values: Float32Array;
  readonly #turns = new Turns();

  constructor(recipe: ImageRecipe) {
    this.#recipe = recipe;
    const { factor, mean, deviation } = recipe;
    this.#values = Float32Array.from({ length: CHANNELS * 256 }, (_, index) => {
      const channel = index >> 8;
      return ((index & 255) * factor - mean[channel]!) / deviation[channel]!;
    });
    sharp.block({ operation: ['VipsForeignLoad'] });
    sharp.unblock({ operation: LOADERS });
    // One thread an image, and one image at a time, leave the cores to the model and bound the memory.
    sharp.concurrency(1);
  }

  /**
   * Reads one image after the other, on a pool thread; tenants taking turns; none whose caller has left before.
   * @returns [3, height, width]
   * @throws ImageFault; the signal's reason
   */
  read(bytes: Uint8Array, caller: Caller): Promise<Float32Array<ArrayBuffer>> {
    return this.#turns.take(caller, () => this.#read(bytes));
  }

  async #read(bytes: Uint8Array): Promise<Float32Array<ArrayBuffer>> {
    return this.#normalised(await this.#resized(await decode(bytes)));
  }

  async #resized({ data, width, height }: Rgb): Promise<Rgb> {
    const { resize } = this.#recipe;
    if (resize === null) return { data, width, height };
    const target = targetOf(resize.size, { width, height });
    if (target.width * target.height > MOST_PIXELS) throw new ImageFault('it is too narrow to be enlarged');
    const image = sharp(data, { raw: { width, height, channels: CHANNELS } });
    return toRgb(image.resize({ ...target, fit: 'fill', kernel: kernelOf(resize.kernel) }));
  }

  /** The middle of the image, or the image in the middle of blackness. */
  #normalised({ data, width: from, height: rows }: Rgb): Float32Array<ArrayBuffer> {
    const { width, height } = this.#recipe;
    const left = Math.floor((from - width) / 2);
    const top = Math.floor((rows - height) / 2);
    const pixels = new Float32Array(new ArrayBuffer(4 * CHANNELS * height * width));
    for (let channel = 0; channel < CHANNELS; channel++) {
      const values = this.#values.subarray(256 * channel, 256 * (channel + 1));
      for (let y = 0; y < height; y++) {
        const row = y + top;
        for (let x = 0; x < width; x++) {
          const column = x + left;
          const inside = row >= 0 && row < rows && column >= 0 && column < from;
          const level = inside ? data[(row * from + column) * CHANNELS + channel]! : 0;
          pixels[(channel * height + y) * width + x] = values[level]!;
        }
      }
    }
    return pixels;
  }
}

async function decode(bytes: Uint8Array): Promise<Rgb> {
  const options = { failOn: 'error', ignoreIcc: true, limitInputPixels: MOST_PIXELS } as const;
  const { width, height, space } = await sharp(bytes, { ...options, limitInputPixels: false })
    .metadata()
    .catch(() => {
      throw new ImageFault(`it is no ${NAMES} image, or its beginning is damaged`);
    });
  if (width * height > MOST_PIXELS) {
    throw new ImageFault(`it has ${width} × ${height} pixels; at most ${MOST_PIXELS} in all are read`);
  }
  const image = sharp(bytes, options).autoOrient();
  const rgb = space === 'cmyk' ? inksToRgb(image) : toRgb(image.removeAlpha().toColourspace('srgb'));
  return await rgb.catch(() => {
    throw new ImageFault('it is damaged or cut off');
  });
}

async function inksToRgb(image: Sharp): Promise<Rgb> {
  const inks = await levelsOf(image.pipelineColourspace('cmyk').toColourspace('cmyk'), INKS);
  return { ...inks, data: await rgbOfInks(inks.data) };
}

const toRgb = (image: Sharp): Promise<Rgb> => levelsOf(image, CHANNELS);

async function levelsOf(image: Sharp, channels: number): Promise<Rgb> {
  const { data, info } = await image
    .raw({ depth: 'uchar' })
    .timeout({ seconds: MOST_SECONDS })
    .toBuffer({ resolveWithObject: true });
  if (info.channels !== channels) throw new Error(`${info.channels} channels instead of ${channels}`);
  return { data, width: info.width, height: info.height };
}

const kernelOf = (kernel: Kernel) => SHARP_KERNELS[kernel];

/** Transformers' rule: the longer edge is cut to a whole number. */
function targetOf(
  size: NonNullable<ImageRecipe['resize']>['size'],
  { width, height }: { readonly width: number; readonly height: number },
): { width: number; height: number } {
  if (typeof size === 'object') return { width: size.width, height: size.height };
  const longest = Math.floor((size * Math.max(width, height)) / Math.min(width, height));
  return width <= height ? { width: size, height: longest } : { width: longest, height: size };
}
