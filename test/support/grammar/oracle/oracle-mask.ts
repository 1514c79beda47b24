import { bytesOf, type TokenBytes } from '../../../../origin/tokenizer/token-bytes.ts';
import type { EarleyChart } from './earley.ts';

/** The ids of all tokens that may follow. Tries each token on the chart; sorted tokens share common prefixes. */
export function oracleMask(chart: EarleyChart, tokens: TokenBytes, sorted: readonly number[]): Set<number> {
  const allowed = new Set<number>();
  const path: number[] = [];
  let dead: number[] | null = null;
  for (const id of sorted) {
    const bytes = [...bytesOf(tokens, id)];
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

/** Ids of the tokens that have text, sorted by bytes. */
export function tokensInByteOrder(tokens: TokenBytes): number[] {
  const ids: number[] = [];
  for (let id = 0; id < tokens.vocabularySize; id++) {
    if (tokens.special[id] === 0 && bytesOf(tokens, id).length > 0) ids.push(id);
  }
  return ids.sort((a, b) => Buffer.compare(bytesOf(tokens, a), bytesOf(tokens, b)));
}

function startsWith(bytes: readonly number[], prefix: readonly number[]): boolean {
  return prefix.every((byte, i) => bytes[i] === byte);
}
