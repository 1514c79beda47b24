/** What is wrong with an image; the message completes "Invalid 'images[0]': …". */
export class ImageFault extends Error {
  override readonly name = 'ImageFault';
}
