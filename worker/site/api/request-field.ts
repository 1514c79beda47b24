/** One field of POST /v1/completions, as the page shows it. */
export interface RequestField {
  /** One line. */
  readonly description: string;
  readonly kind: 'number' | 'integer' | 'flag' | 'choice' | 'text' | 'json';
  readonly minimum?: number;
  readonly maximum?: number;
  /** Values of a choice. */
  readonly values?: readonly string[];
}
