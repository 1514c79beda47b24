import { failureOf, RequestFailure } from './request-failure.ts';

/** A model in this browser, which answers completion requests. */
export interface LocalServer {
  /** What `model` names it. */
  readonly id: string;
  /**
   * Answers a POST /v1/completions as the Worker does.
   * @throws the signal's reason; RequestFailure if its thread has ended
   */
  readonly fetch: (body: string, dialect: string | null, signal?: AbortSignal) => Promise<Response>;
}

/** Ends the names of models in this browser. */
export const LOCAL_SUFFIX = '@browser';

/** How requests are authenticated and answered. */
export interface Connection {
  /** API key; null = none. */
  readonly key: string | null;
  /** Null = the tenant's own dialect. */
  readonly dialect: string | null;
  /** Null or absent = none is open. */
  readonly local?: LocalServer | null;
}

export interface Model {
  readonly id: string;
  /** The model's own id; `id` may be an alias. */
  readonly root: string;
  readonly max_model_len: number;
  readonly state: string;
  /** Absent = its server cannot heal prompts. */
  readonly token_healing?: boolean;
}

export interface SendOptions {
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Default: POST with a body, else GET. */
  readonly method?: string;
  readonly signal?: AbortSignal;
}

/** Sends one request. @throws RequestFailure; the signal's reason if it is aborted */
export async function send(
  connection: Connection,
  path: string,
  { body, method, signal }: SendOptions = {},
): Promise<Response> {
  const headers = new Headers();
  if (connection.key !== null) headers.set('authorization', `Bearer ${connection.key}`);
  if (connection.dialect !== null) headers.set('x-dialect', connection.dialect);
  if (body !== undefined) headers.set('content-type', 'application/json');
  let response: Response;
  try {
    response = isLocal(body)
      ? await sendLocally(connection, body, signal)
      : await fetch(path, {
          headers,
          method: method ?? (body === undefined ? 'GET' : 'POST'),
          ...(body !== undefined && { body: JSON.stringify(body) }),
          ...(signal && { signal }),
        });
  } catch (thrown) {
    signal?.throwIfAborted();
    if (thrown instanceof RequestFailure) throw thrown;
    throw noResponse(thrown);
  }
  if (!response.ok) throw await failureOf(response);
  return response;
}

const isLocal = (body: unknown): body is { readonly model: string } =>
  typeof body === 'object' && body !== null && 'model' in body && String(body.model).endsWith(LOCAL_SUFFIX);

function sendLocally(
  { local, dialect }: Connection,
  body: { readonly model: string },
  signal: AbortSignal | undefined,
): Promise<Response> {
  if (local?.id === body.model) return local.fetch(JSON.stringify(body), dialect, signal);
  throw new RequestFailure('not-open', `${body.model} is not open.`);
}

/** Returns the failure of a request without a response. */
export const noResponse = (cause: unknown): RequestFailure =>
  navigator.onLine
    ? new RequestFailure('unreachable', `${location.host} does not answer (${String(cause)}).`)
    : new RequestFailure('offline', 'This device is offline.');

/** Sends one request and returns the JSON of its response. The caller states the type. */
export const requestJson = async <T>(...request: Parameters<typeof send>): Promise<T> =>
  (await (await send(...request)).json()) as T;

export const listModels = async (connection: Connection, signal?: AbortSignal): Promise<readonly Model[]> =>
  (await requestJson<{ data: Model[] }>(connection, '/v1/models', signal ? { signal } : {})).data;
