/** Something other than tokens in a prompt: equal keys, equal content. */
export interface Span {
  /** Position where it begins. */
  readonly at: number;
  readonly count: number;
  readonly key: string;
}

/** Position from which two prompts hold different things, or one of them holds one; Infinity = nowhere. */
export function firstDifference(a: readonly Span[], b: readonly Span[]): number {
  for (let index = 0; index < Math.max(a.length, b.length); index++) {
    const [one, other] = [a[index], b[index]];
    if (one === undefined || other === undefined) return (one ?? other)!.at;
    if (one.at !== other.at || one.count !== other.count || one.key !== other.key) {
      return Math.min(one.at, other.at);
    }
  }
  return Infinity;
}
