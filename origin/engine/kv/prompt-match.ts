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
    const [one, other] = [a[index], b[index]];
    if (one === undefined || other === undefined) return (one ?? other)!.at;
    if (one.at !== other.at || one.count !== other.count || one.key !== other.key) {
      return Math.min(one.at, other.at);
    }
  }
  return Infinity;
}
