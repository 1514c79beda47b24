const UNITS = ['kB', 'MB', 'GB', 'TB', 'PB'] as const;

/** "12.3 MB": three digits, decimal units, as hubs show sizes. */
export function byteSize(bytes: number): string {
  let value = bytes;
  let unit = 'B';
  for (const larger of UNITS) {
    if (value < 999.5) break;
    value /= 1000;
    unit = larger;
  }
  const digits = unit === 'B' || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return `${value.toFixed(digits)} ${unit}`;
}
