import { setImmediate } from 'node:timers/promises';
import sharp, { type Sharp } from 'sharp';
import type { ImageRecipe, Kernel } from '../model/config/preprocessor-config.ts';
import { FairMutex, type LockCaller } from '../process/fair-mutex.ts';
import { ImageFault } from './prompt-images.ts';

/** Pixels of the largest image, before and after resizing: 100 MB of RGB. A small file can claim any size. */
const MAX_PIXELS = 2 ** 25;
const MAX_SECONDS = 10;
const CHANNELS = 3;
const CMYK_CHANNELS = 4;

/** CMYK pixels converted at once, about 2 ms of work, before other events are served. */
const CMYK_BATCH = 2 ** 18;

/** Accepted formats. SVG is excluded because it can refer to other files and has no fixed size. */
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
 * Decodes an image for a model's vision encoder, as the image processors of transformers do. It takes the
 * first frame, rotates it by its EXIF tag and converts it to RGB: alpha is dropped, grey is tripled, CMYK is
 * converted, 16 bits are cut to 8. It then resizes, crops the centre or pads with black, scales and
 * normalizes.
 *
 * Only the resizing is inexact. Reduced images are within 3 levels of Pillow's algorithm in doubles. Enlarged
 * images are shifted by a quarter to a half of an old pixel, and Lanczos becomes bicubic. Colour profiles are
 * ignored, as Pillow ignores them. Transparent pixels of a GIF are black.
 */
export class ImageReader {
  readonly #recipe: ImageRecipe;
  /** [channel, level] */
  readonly #values: Float32Array;
  readonly #mutex = new FairMutex();

  constructor(recipe: ImageRecipe) {
    this.#recipe = recipe;
    const { factor, mean, deviation } = recipe;
    this.#values = Float32Array.from({ length: CHANNELS * 256 }, (_, index) => {
      const channel = index >> 8;
      return ((index & 255) * factor - mean[channel]!) / deviation[channel]!;
    });
    sharp.block({ operation: ['VipsForeignLoad'] });
    sharp.unblock({ operation: LOADERS });
    // One thread and one image at a time leave the cores to the model and bound the memory.
    sharp.concurrency(1);
  }

  /**
   * Reads one image at a time on a pool thread. Tenants alternate. The image of a disconnected client is not
   * read.
   * @returns pixels [3, height, width]
   * @throws ImageFault; the signal's reason
   */
  read(bytes: Uint8Array, caller: LockCaller): Promise<Float32Array<ArrayBuffer>> {
    return this.#mutex.run(caller, () => this.#read(bytes));
  }

  async #read(bytes: Uint8Array): Promise<Float32Array<ArrayBuffer>> {
    return this.#normalized(await this.#resized(await decode(bytes)));
  }

  async #resized({ data, width, height }: Rgb): Promise<Rgb> {
    const { resize } = this.#recipe;
    if (resize === null) return { data, width, height };
    const target = targetOf(resize.size, { width, height });
    if (target.width * target.height > MAX_PIXELS)
      throw new ImageFault('it is too narrow to be resized for this model');
    const image = sharp(data, { raw: { width, height, channels: CHANNELS } });
    return toRgb(image.resize({ ...target, fit: 'fill', kernel: kernelOf(resize.kernel) }));
  }

  /** Crops the centre of the image, or pads it with black. */
  #normalized({ data, width: from, height: rows }: Rgb): Float32Array<ArrayBuffer> {
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
  const options = { failOn: 'error', ignoreIcc: true, limitInputPixels: MAX_PIXELS } as const;
  const { width, height, space } = await sharp(bytes, { ...options, limitInputPixels: false })
    .metadata()
    .catch(() => {
      throw new ImageFault(`it is not a ${NAMES} image, or its header is damaged`);
    });
  if (width * height > MAX_PIXELS) {
    throw new ImageFault(`it has ${width} × ${height} pixels; at most ${MAX_PIXELS} are allowed`);
  }
  const image = sharp(bytes, options).autoOrient();
  const rgb = space === 'cmyk' ? cmykToRgb(image) : toRgb(image.removeAlpha().toColourspace('srgb'));
  return await rgb.catch(() => {
    throw new ImageFault('it is damaged or truncated');
  });
}

async function cmykToRgb(image: Sharp): Promise<Rgb> {
  const cmyk = await rawPixels(image.pipelineColourspace('cmyk').toColourspace('cmyk'), CMYK_CHANNELS);
  return { ...cmyk, data: await rgbFromCmyk(cmyk.data) };
}

/**
 * Converts CMYK as Pillow does without colour profiles: each ink darkens the light that black leaves. The
 * print-like conversion of libvips differs from it by up to a third of the scale.
 * @param cmyk cyan, magenta, yellow and black of each pixel; 255 = full ink
 */
async function rgbFromCmyk(cmyk: Buffer): Promise<Buffer> {
  const pixels = cmyk.length / CMYK_CHANNELS;
  const rgb = Buffer.alloc(CHANNELS * pixels);
  for (let start = 0; start < pixels; start += CMYK_BATCH) {
    if (start > 0) await setImmediate();
    const end = Math.min(start + CMYK_BATCH, pixels);
    for (let pixel = start; pixel < end; pixel++) {
      const light = 255 - cmyk[CMYK_CHANNELS * pixel + 3]!;
      for (let channel = 0; channel < CHANNELS; channel++) {
        const ink = cmyk[CMYK_CHANNELS * pixel + channel]!;
        rgb[CHANNELS * pixel + channel] = light - Math.round((ink * light) / 255);
      }
    }
  }
  return rgb;
}

const toRgb = (image: Sharp): Promise<Rgb> => rawPixels(image, CHANNELS);

async function rawPixels(image: Sharp, channels: number): Promise<Rgb> {
  const { data, info } = await image
    .raw({ depth: 'uchar' })
    .timeout({ seconds: MAX_SECONDS })
    .toBuffer({ resolveWithObject: true });
  if (info.channels !== channels) throw new Error(`${info.channels} channels instead of ${channels}`);
  return { data, width: info.width, height: info.height };
}

const kernelOf = (kernel: Kernel) => SHARP_KERNELS[kernel];

/** Follows transformers: the longer edge is rounded down. */
function targetOf(
  size: NonNullable<ImageRecipe['resize']>['size'],
  { width, height }: { readonly width: number; readonly height: number },
): { width: number; height: number } {
  if (typeof size === 'object') return { width: size.width, height: size.height };
  const longest = Math.floor((size * Math.max(width, height)) / Math.min(width, height));
  return width <= height ? { width: size, height: longest } : { width: longest, height: size };
}
