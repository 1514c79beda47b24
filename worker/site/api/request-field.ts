/** One field of POST /v1/completions, as the page shows it. */
export interface RequestField {
  /** One line. */
  readonly description: string;
  /** Kind of the control: `texts` and `ids` are lists. */
  readonly kind: 'number' | 'integer' | 'flag' | 'choice' | 'text' | 'texts' | 'ids' | 'json';
  readonly minimum?: number;
  readonly maximum?: number;
  /** Values of a choice. */
  readonly values?: readonly string[];
}

/** Request fields by name, as the visitor set them. Absent = the dialect's default. */
export type Parameters = Readonly<Record<string, unknown>>;
