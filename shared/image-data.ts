/** How an image travels inside a request: `data:image/jpeg;base64,…`, of which `data:` and `;base64` may be missing. */
const HEAD = /^(?:data:)?image\/[\w.+-]+(?:;[\w.+=-]+)*,/i;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** The image's bytes as base64, or what is wrong with the text, to complete "Invalid 'images[0]': …". */
export function imageBase64(image: string): { readonly base64: string } | { readonly fault: string } {
  if (/^https?:/i.test(image)) {
    return { fault: 'addresses are not fetched. Send the image itself as data:image/jpeg;base64,…' };
  }
  const head = HEAD.exec(image)?.[0];
  if (head === undefined) return { fault: 'expected data:image/jpeg;base64,… or another type of image' };
  const base64 = image.slice(head.length);
  const fits =
    BASE64.test(base64) && (base64.endsWith('=') ? base64.length % 4 === 0 : base64.length % 4 !== 1);
  return fits ? { base64 } : { fault: 'what follows the comma is not base64' };
}
