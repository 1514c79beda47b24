import {
  IMAGE_MARK,
  imageBase64,
  invalidImage,
  wrongImageCount,
} from '@continuo/shared/completion-prompt.ts';
import type { SubmittedImage } from '../engine/messages.ts';
import type { LockCaller } from '../process/fair-mutex.ts';

/** Reports a fault in an image; the message completes "Invalid 'images[0]': …". */
export class ImageFault extends Error {
  override readonly name = 'ImageFault';
}

/** How request preparation reads images for a model. */
export interface ImageInput {
  /** The token that stands for an image in a prompt, and its text. */
  readonly tokenId: number;
  readonly token: string;
  /** Prompt positions of one image. */
  readonly positions: number;
  /**
   * Returns pixels [3, height, width] for the vision encoder, and a key that other pixels do not have.
   * @throws ImageFault; the signal's reason if it was aborted before the image's turn
   */
  readonly read: (base64: string, caller: LockCaller) => Promise<Pick<SubmittedImage, 'key' | 'pixels'>>;
}

/** The token ranges that images take in one prompt, in order. */
export type ImagePositions = readonly Pick<SubmittedImage, 'at' | 'count'>[];

/** Replaces the image marks of a text by the model's image token. */
export const withImageTokens = (text: string, { token }: ImageInput): string =>
  text.replaceAll(IMAGE_MARK, token);

/** Returns the ranges that the images will take after `expandImageTokens`. */
export function imagePositions(ids: Iterable<number>, { tokenId, positions }: ImageInput): ImagePositions {
  const ranges: { at: number; count: number }[] = [];
  let at = 0;
  for (const id of ids) {
    if (id === tokenId) ranges.push({ at, count: positions });
    at += id === tokenId ? positions : 1;
  }
  return ranges;
}

/** Repeats every image token once per position of its image. */
export function expandImageTokens(
  ids: readonly number[],
  { tokenId, positions }: ImageInput,
): readonly number[] {
  const expanded: number[] = [];
  for (const id of ids) {
    for (let copies = id === tokenId ? positions : 1; copies > 0; copies--) expanded.push(id);
  }
  return expanded;
}

/** @throws ApiError 400 if the numbers of images and image marks differ */
export function checkImageCount(images: readonly string[], prompts: readonly ImagePositions[]): void {
  const marks = prompts.reduce((sum, { length }) => sum + length, 0);
  if (marks !== images.length) throw wrongImageCount(images.length, marks);
}

/**
 * Reads the images of each prompt. Images fill the positions in order, across prompts.
 * @throws ApiError 400 that names the image; the signal's reason, leaving the remaining images unread
 */
export async function readImages(
  images: readonly string[],
  prompts: readonly ImagePositions[],
  input: ImageInput,
  caller: LockCaller,
): Promise<SubmittedImage[][]> {
  const read: SubmittedImage[][] = [];
  let index = 0;
  for (const ranges of prompts) {
    const inPrompt: SubmittedImage[] = [];
    for (const range of ranges) {
      inPrompt.push({ ...range, ...(await readImage(images[index]!, index, input, caller)) });
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
  caller: LockCaller,
): ReturnType<ImageInput['read']> {
  const parsed = imageBase64(image);
  if ('fault' in parsed) throw invalidImage(index, parsed.fault);
  try {
    return await read(parsed.base64, caller);
  } catch (error) {
    throw error instanceof ImageFault ? invalidImage(index, error.message) : error;
  }
}
