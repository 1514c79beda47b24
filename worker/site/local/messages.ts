/** Messages between the page and the thread of the model. */

export type ToThread =
  /** Opens the built-in model. */
  | { readonly type: 'open-built-in' }
  /** Opens a model of the visitor. */
  | { readonly type: 'open'; readonly name: string; readonly files: ReadonlyMap<string, File> }
  /** A POST /v1/completions. */
  | { readonly type: 'request'; readonly id: number; readonly body: string; readonly dialect: string | null }
  | { readonly type: 'abort'; readonly id: number }
  /** Asks whether the thread runs, which answers between two steps. */
  | { readonly type: 'ping' };

export type FromThread =
  | { readonly type: 'progress'; readonly loaded: number; readonly total: number }
  | {
      readonly type: 'opened';
      readonly name: string;
      readonly context: number;
      /** Whether the files are kept for the next visit; null = they are the visitor's own. */
      readonly kept: boolean | null;
    }
  | { readonly type: 'pong' }
  | { readonly type: 'failed'; readonly message: string }
  | { readonly type: 'head'; readonly id: number; readonly status: number; readonly contentType: string }
  | { readonly type: 'text'; readonly id: number; readonly text: string }
  | { readonly type: 'end'; readonly id: number };
