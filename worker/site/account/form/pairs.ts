/** Lists and pairs of names and values as the lines of a field. */

/** Returns the lines that are not empty; null if there are none. */
export const lines = (text: string): string[] | null => {
  const all = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  return all.length === 0 ? null : all;
};

type Pair = readonly [name: string, value: string];

function plainPair(line: string): Pair {
  const [, name = line, value = ''] = /^([^:]*):\s*(.*)$/.exec(line) ?? [];
  return [name.trim(), value];
}

/** A line that begins with a quote is read as JSON, if it is JSON. */
function pairOf(line: string): Pair {
  try {
    const [pair] = line.startsWith('"') ? Object.entries<unknown>(JSON.parse(`{${line}}`)) : [];
    if (typeof pair?.[1] === 'string') return [pair[0], pair[1]];
  } catch {
    // A plain pair may begin with a quote.
  }
  return plainPair(line);
}

/** Returns the line of a pair: plain, or in JSON where the plain one would be read as another pair. */
function pairLine(name: string, value: string): string {
  const line = `${name}: ${value}`;
  const read = lines(line)?.map(pairOf) ?? [];
  const isPlain = read.length === 1 && read[0]![0] === name && read[0]![1] === value;
  return isPlain ? line : `${JSON.stringify(name)}: ${JSON.stringify(value)}`;
}

export const pairLines = (pairs: Readonly<Record<string, string>>): string =>
  Object.entries(pairs)
    .map(([name, value]) => pairLine(name, value))
    .join('\n');

/** Returns the pairs of the lines; null if there are none. */
export function pairs(text: string): Record<string, string> | null {
  const all = lines(text);
  return all && Object.fromEntries(all.map(pairOf));
}
