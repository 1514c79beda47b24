/** Messages between the Worker and its two replay objects. Plain data, because it crosses machines. */

/** A response that can be sent again. */
export interface StoredResponse {
  readonly status: number;
  readonly contentType: string;
  /** Further headers, without those that every response has. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The beginning of a large body, whose further pieces are read one by one. */
  readonly body: string;
  /** Number of further pieces; absent = none. */
  readonly pieces?: number;
}

/** The next action of a request with an idempotency key. */
export type IdempotencyClaim =
  | { readonly turn: 'run' }
  | { readonly turn: 'wait' }
  | { readonly turn: 'mismatch' }
  | { readonly turn: 'replay'; readonly answer: StoredResponse };

export interface IdempotentAnswerRpc extends Rpc.DurableObjectBranded {
  claim(claimant: string, requestHash: string, runningMs: number): Promise<IdempotencyClaim>;
  /** Stores a further piece of a body, before `keep`. */
  keepPiece(claimant: string, index: number, text: string): Promise<void>;
  keep(claimant: string, answer: StoredResponse): Promise<void>;
  /** Returns a further piece of the stored body; null = the response has expired. */
  piece(index: number): Promise<string | null>;
  release(claimant: string): Promise<void>;
}

/** Properties of the request that a resumable stream or a batch sends to its own Worker. */
export interface InnerRequestProps {
  /** Hex part of the completion's id, which also names the stream's object. */
  readonly completion?: string;
  /** Id of the key that a line of a batch runs with. Its secret is not stored. */
  readonly batchKey?: string;
}

/** The Worker's own entry point, which accepts properties that outside requests cannot set. */
export type LoopbackWorker = (options: { props: InnerRequestProps }) => Fetcher;

/**
 * The rest of a stream, as bytes if it has ended and is short. `beyond-end`: it has no event with this
 * number. Null: the tenant has no such stream.
 */
export type Resumed = Uint8Array | ReadableStream<Uint8Array> | 'beyond-end' | null;

export interface StreamTailRpc extends Rpc.DurableObjectBranded {
  begin(request: Request, tenantId: string, props: InnerRequestProps): Promise<Response>;
  resume(lastEventId: number, tenantId: string): Promise<Resumed>;
  /** Returns the headers that a resumed stream repeats. Objects of version 0.2.0 do not have it. */
  headers(tenantId: string): Promise<Readonly<Record<string, string>>>;
}
