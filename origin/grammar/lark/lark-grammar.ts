/** A parsed Lark expression with unresolved names. */
export type LarkNode =
  | { readonly kind: 'name'; readonly name: string; readonly offset: number }
  | { readonly kind: 'string'; readonly value: string; readonly ignoreCase: boolean }
  | { readonly kind: 'regex'; readonly source: string; readonly flags: string; readonly offset: number }
  | { readonly kind: 'range'; readonly from: number; readonly to: number }
  | { readonly kind: 'substring'; readonly chunks: readonly string[] }
  | { readonly kind: 'sequence' | 'choice'; readonly items: readonly LarkNode[] }
  | { readonly kind: 'repeat'; readonly item: LarkNode; readonly min: number; readonly max: number }
  /** Texts that all items match. */
  | { readonly kind: 'and'; readonly items: readonly LarkNode[]; readonly offset: number }
  /** Texts that the item does not match. */
  | { readonly kind: 'not'; readonly item: LarkNode; readonly offset: number }
  /** A token by name, or by ids as ranges. */
  | { readonly kind: 'token'; readonly token: string | readonly number[]; readonly offset: number }
  /** `@name`: a reference to another grammar. */
  | { readonly kind: 'grammar'; readonly name: string; readonly offset: number }
  | { readonly kind: 'lark'; readonly source: string; readonly offset: number }
  | { readonly kind: 'json'; readonly schema: unknown; readonly offset: number };

export interface LarkDefinition {
  readonly name: string;
  readonly offset: number;
  readonly body: LarkNode;
  /** A rule that matches like one terminal and ends as soon as it can; null for other rules and terminals. */
  readonly lazy: LazyEnd | null;
}

export interface LazyEnd {
  /** Ends the rule. As a stop, it is not part of the text. */
  readonly end: LarkNode | null;
  readonly isStop: boolean;
}

export interface LarkGrammar {
  /** Rules (lower case) and terminals (upper case) by name. */
  readonly definitions: ReadonlyMap<string, LarkDefinition>;
  readonly ignored: readonly LarkNode[];
  /** Whether ignored text may not be repeated. */
  readonly ignoresOnce: boolean;
  /** Attributes that have no effect, because they do not change which texts match. */
  readonly ignoredAttributes: ReadonlySet<string>;
}

/** Whether the name is a terminal's, as opposed to a rule's. */
export function isTerminal(name: string): boolean {
  return /^_?[A-Z]/.test(name);
}
