import { bytesOf, type TokenBytes } from '../../../../origin/tokenizer/token-bytes.ts';
import type { EarleyChart } from './earley.ts';

/** What a grammar may read for a token: its text unless it is special or no UTF-8, or the reference by id. */
export function readPaths(tokens: TokenBytes, id: number): Uint8Array[] {
  const text = bytesOf(tokens, id);
  const isText = tokens.special[id] === 0 && text.length > 0 && !text.includes(255);
  const reference = Uint8Array.of(255, 0, id >> 8, id & 255);
  return isText ? [text, reference] : [reference];
}

interface TokenPath {
  readonly id: number;
  readonly bytes: readonly number[];
}

/** The ids of all tokens that may follow. Tries paths on the chart; sorted paths share common prefixes. */
export function oracleMask(chart: EarleyChart, sorted: readonly TokenPath[]): Set<number> {
  const allowed = new Set<number>();
  const path: number[] = [];
  let dead: readonly number[] | null = null;
  for (const { id, bytes } of sorted) {
    if (dead !== null && startsWith(bytes, dead)) continue;
    dead = null;
    while (!startsWith(bytes, path)) {
      chart.pop();
      path.pop();
    }
    for (let i = path.length; i < bytes.length; i++) {
      if (!chart.push(bytes[i]!)) {
        dead = bytes.slice(0, i + 1);
        break;
      }
      path.push(bytes[i]!);
    }
    if (dead === null) allowed.add(id);
  }
  for (const _ of path) chart.pop();
  return allowed;
}

/** All paths of all tokens, sorted by bytes. */
export function pathsInByteOrder(tokens: TokenBytes): TokenPath[] {
  const ids = Array.from({ length: tokens.vocabularySize }, (_, id) => id);
  const paths = ids.flatMap((id) => readPaths(tokens, id).map((bytes) => ({ id, bytes: [...bytes] })));
  return paths.sort((a, b) => Buffer.compare(Buffer.from(a.bytes), Buffer.from(b.bytes)));
}

function startsWith(bytes: readonly number[], prefix: readonly number[]): boolean {
  return prefix.every((byte, i) => bytes[i] === byte);
}
