import { ApiError, counted } from './errors.ts';

/** Mark for an image in a prompt, the same for all models. */
export const IMAGE_MARK = '<image>';

/** Start of an image in a request: `data:image/jpeg;base64,`. `data:` and `;base64` are optional. */
const HEAD = /^(?:data:)?image\/[\w.+-]+(?:;[\w.+=-]+)*,/i;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** Returns the image's bytes as base64, or a fault that completes "Invalid 'images[0]': …". */
export function imageBase64(image: string): { readonly base64: string } | { readonly fault: string } {
  if (/^https?:/i.test(image)) {
    return { fault: 'image URLs are not supported. Send the image itself as data:image/jpeg;base64,…' };
  }
  const head = HEAD.exec(image)?.[0];
  if (head === undefined) return { fault: 'expected data:image/jpeg;base64,… or another image type' };
  const base64 = image.slice(head.length);
  const fits =
    BASE64.test(base64) && (base64.endsWith('=') ? base64.length % 4 === 0 : base64.length % 4 !== 1);
  return fits ? { base64 } : { fault: 'the text after the comma is not base64' };
}

export function wrongImageCount(images: number, marks: number): ApiError {
  const message = `Invalid 'images': got ${counted(images, 'image')}, but the prompt has ${counted(marks, `'${IMAGE_MARK}' mark`)}.`;
  return new ApiError('invalid_value', message, { param: 'images' });
}

/** @param fault why the image is invalid, without a full stop */
export function invalidImage(index: number, fault: string): ApiError {
  const param = `images[${index}]`;
  return new ApiError('invalid_value', `Invalid '${param}': ${fault}.`, { param });
}
