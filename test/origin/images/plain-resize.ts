/**
 * Pillow's resampling as its documentation and papers describe it, in float64. Each output pixel is a
 * weighted mean of the input pixels under the kernel, which is scaled by the reduction factor. Rows come
 * first, then columns; both passes round to integer levels.
 */

const KERNELS = {
  bilinear: { support: 1, weight: (x: number) => Math.max(0, 1 - Math.abs(x)) },
  bicubic: {
    support: 2,
    weight: (signed: number) => {
      const x = Math.abs(signed);
      if (x < 1) return 1.5 * x ** 3 - 2.5 * x ** 2 + 1;
      return x < 2 ? -0.5 * x ** 3 + 2.5 * x ** 2 - 4 * x + 2 : 0;
    },
  },
} as const;

function resizeLine(line: readonly number[], size: number, kernel: keyof typeof KERNELS): number[] {
  const { support, weight } = KERNELS[kernel];
  const scale = line.length / size;
  const widened = Math.max(scale, 1);
  return Array.from({ length: size }, (_, index) => {
    const centre = (index + 0.5) * scale;
    let sum = 0;
    let total = 0;
    for (let at = 0; at < line.length; at++) {
      const x = (at + 0.5 - centre) / widened;
      if (Math.abs(x) >= support) continue;
      sum += weight(x) * line[at]!;
      total += weight(x);
    }
    return Math.min(255, Math.max(0, Math.round(sum / total)));
  });
}

const transpose = (rows: readonly (readonly number[])[]): number[][] =>
  rows[0]!.map((_, column) => rows.map((row) => row[column]!));

/** One channel, as rows. */
export function plainResize(
  rows: readonly (readonly number[])[],
  size: { readonly width: number; readonly height: number },
  kernel: keyof typeof KERNELS,
): number[][] {
  const narrowed = rows.map((row) => resizeLine(row, size.width, kernel));
  return transpose(transpose(narrowed).map((column) => resizeLine(column, size.height, kernel)));
}
