import type { CodePoints } from '../automaton/code-points.ts';

/** A parsed regular expression. Groups leave no trace: nothing captures. */
export type RegexNode =
  | { readonly kind: 'chars'; readonly set: CodePoints }
  | { readonly kind: 'sequence'; readonly items: readonly RegexNode[] }
  | { readonly kind: 'choice'; readonly items: readonly RegexNode[] }
  /** `max` may be Infinity. */
  | { readonly kind: 'repeat'; readonly item: RegexNode; readonly min: number; readonly max: number }
  /** `^` or `$`: the start or the end of the whole text. */
  | { readonly kind: 'anchor'; readonly at: 'start' | 'end' };
