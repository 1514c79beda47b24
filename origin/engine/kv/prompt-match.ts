/** An image in a prompt. Equal keys mean equal content. */
export interface PromptSpan {
  /** Position of its first token. */
  readonly at: number;
  readonly count: number;
  readonly key: string;
}

/** Returns how many tokens are equal at the start of two prompts, at most `limit`. */
export function commonPrefix(a: Int32Array, b: Int32Array, limit: number): number {
  let at = 0;
  while (at < limit && a[at] === b[at]) at++;
  return at;
}

/** Returns the position from which the images of two prompts differ; Infinity if they are equal. */
export function firstDifference(a: readonly PromptSpan[], b: readonly PromptSpan[]): number {
  for (let index = 0; index < Math.max(a.length, b.length); index++) {
    const [left, right] = [a[index], b[index]];
    if (left === undefined || right === undefined) return (left ?? right)!.at;
    if (left.at !== right.at || left.count !== right.count || left.key !== right.key) {
      return Math.min(left.at, right.at);
    }
  }
  return Infinity;
}
