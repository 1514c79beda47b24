/** An expression of a Lark grammar, names unresolved. */
export type LarkNode =
  | { readonly kind: 'name'; readonly name: string; readonly offset: number }
  | { readonly kind: 'string'; readonly value: string; readonly ignoreCase: boolean }
  | { readonly kind: 'regex'; readonly source: string; readonly flags: string; readonly offset: number }
  | { readonly kind: 'range'; readonly from: number; readonly to: number }
  | { readonly kind: 'sequence' | 'choice'; readonly items: readonly LarkNode[] }
  | { readonly kind: 'repeat'; readonly item: LarkNode; readonly min: number; readonly max: number }
  /** `@name` of another grammar, or `%json {…}`. */
  | { readonly kind: 'grammar'; readonly name: string; readonly offset: number }
  | { readonly kind: 'json'; readonly schema: unknown };

export interface LarkGrammar {
  /** Rules (lower case) and terminals (upper case) by name. */
  readonly definitions: ReadonlyMap<string, LarkNode>;
  readonly ignored: readonly LarkNode[];
}
