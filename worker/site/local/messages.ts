import type { WebDevice } from '@continuo/origin/local/local-model.ts';

/** Messages between the page and the thread of the model. */

/**
 * `auto`: WebGPU if a graphics card is there, passes a self-test and is faster. `webgpu`: also if the
 * processor emulates it, or it is slower. Both fall back to WebAssembly.
 */
export type ChosenDevice = 'auto' | 'webgpu' | 'wasm';

export type ToThread =
  /** Opens the built-in model. */
  | { readonly type: 'open-built-in'; readonly device: ChosenDevice }
  /** Opens a model of the visitor. */
  | {
      readonly type: 'open';
      readonly device: ChosenDevice;
      readonly name: string;
      readonly files: ReadonlyMap<string, File>;
    }
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
      readonly device: WebDevice;
      /** How the browser names its graphics card; null = WebGPU was not tried. */
      readonly card: string | null;
    }
  /** The device has failed, and another one goes on. */
  | { readonly type: 'moved'; readonly device: WebDevice }
  | { readonly type: 'pong' }
  | { readonly type: 'failed'; readonly message: string }
  | { readonly type: 'head'; readonly id: number; readonly status: number; readonly contentType: string }
  | { readonly type: 'text'; readonly id: number; readonly text: string }
  | { readonly type: 'end'; readonly id: number };
