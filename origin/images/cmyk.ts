import { setImmediate } from 'node:timers/promises';

const INKS = 4;

/** Between so many pixels, some two milliseconds, the event loop turns. */
const AT_ONCE = 2 ** 18;

/**
 * Inks as light, as Pillow reckons without colour profiles: what one ink leaves of the light that black leaves. Their
 * look in print, as libvips would have it, is other colours by a third of the scale.
 * @param inks cyan, magenta, yellow, black of each pixel; 255 = all of it
 */
export async function rgbOfInks(inks: Buffer): Promise<Buffer> {
  const pixels = inks.length / INKS;
  const rgb = Buffer.alloc(3 * pixels);
  for (let start = 0; start < pixels; start += AT_ONCE) {
    if (start > 0) await setImmediate();
    const end = Math.min(start + AT_ONCE, pixels);
    for (let pixel = start; pixel < end; pixel++) {
      const light = 255 - inks[INKS * pixel + 3]!;
      for (let channel = 0; channel < 3; channel++) {
        rgb[3 * pixel + channel] = light - Math.round((inks[INKS * pixel + channel]! * light) / 255);
      }
    }
  }
  return rgb;
}
