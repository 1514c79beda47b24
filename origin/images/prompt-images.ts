import { createHash } from 'node:crypto';
import { IMAGE_MARK, imageBase64, invalidImage, wrongImageCount } from '../../shared/image-data.ts';
import type { SubmittedImage } from '../engine/messages.ts';
import type { Caller } from '../fair-mutex.ts';
import { ImageFault } from './image-fault.ts';

/** What the HTTP half knows of how its model sees. */
export interface ImageInput {
  /** The token that stands for an image in a prompt, and its text. */
  readonly tokenId: number;
  readonly token: string;
  /** Positions of the prompt that one image takes. */
  readonly positions: number;
  /**
   * Pixels [3, height, width] as the model's encoder wants them.
   * @throws ImageFault; the signal's reason when it was aborted before the image's turn
   */
  readonly read: (bytes: Uint8Array, caller: Caller) => Promise<Float32Array<ArrayBuffer>>;
}

/** The places that images take among a prompt's tokens, in order. */
export type Places = readonly Pick<SubmittedImage, 'at' | 'count'>[];

/** The text as the model's tokenizer knows it. */
export const withImageTokens = (text: string, { token }: ImageInput): string =>
  text.replaceAll(IMAGE_MARK, token);

/** Where the images are to stand, once there is room for them. */
export function placesOf(ids: Iterable<number>, { tokenId, positions }: ImageInput): Places {
  const places: { at: number; count: number }[] = [];
  let at = 0;
  for (const id of ids) {
    if (id === tokenId) places.push({ at, count: positions });
    at += id === tokenId ? positions : 1;
  }
  return places;
}

/** Makes room for the images: every image token becomes as many as an image has positions. */
export function spread(ids: readonly number[], { tokenId, positions }: ImageInput): readonly number[] {
  const spreadIds: number[] = [];
  for (const id of ids) {
    for (let copies = id === tokenId ? positions : 1; copies > 0; copies--) spreadIds.push(id);
  }
  return spreadIds;
}

/** @throws ApiError 400 when there are more or fewer images than places for them */
export function checkCount(images: readonly string[], places: readonly Places[]): void {
  const marks = places.reduce((sum, { length }) => sum + length, 0);
  if (marks !== images.length) throw wrongImageCount(images.length, marks);
}

/**
 * The images in their places, prompt by prompt. Images fill the places in order, whichever prompt these are in.
 * @throws ApiError 400 naming the image; the signal's reason, with what has not begun left undone
 */
export async function readImages(
  images: readonly string[],
  places: readonly Places[],
  input: ImageInput,
  caller: Caller,
): Promise<SubmittedImage[][]> {
  const read: SubmittedImage[][] = [];
  let index = 0;
  for (const prompt of places) {
    const inPrompt: SubmittedImage[] = [];
    for (const place of prompt) {
      const pixels = await readImage(images[index]!, index, input, caller);
      inPrompt.push({ ...place, key: createHash('sha256').update(pixels).digest('base64'), pixels });
      index++;
    }
    read.push(inPrompt);
  }
  return read;
}

async function readImage(
  image: string,
  index: number,
  { read }: ImageInput,
  caller: Caller,
): Promise<Float32Array<ArrayBuffer>> {
  const parsed = imageBase64(image);
  if ('fault' in parsed) throw invalidImage(index, parsed.fault);
  try {
    return await read(Buffer.from(parsed.base64, 'base64'), caller);
  } catch (error) {
    throw error instanceof ImageFault ? invalidImage(index, error.message) : error;
  }
}
