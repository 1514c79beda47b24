import type { Batch, FileObject } from '../../../shared/batch.ts';
import { eventually } from '../support/eventually.ts';
import type { WorkerClient } from '../support/worker.ts';

/** Calls files and batches as clients do. */

export type Fields = Readonly<Record<string, unknown>>;

/** A record of a result file. */
export interface LineRecord {
  readonly id: string;
  readonly custom_id: string | null;
  readonly line?: number;
  readonly response: {
    readonly status_code: number;
    readonly request_id: string;
    readonly body: Fields & { readonly choices: readonly { readonly text: string }[] };
  } | null;
  readonly error: { readonly code: string; readonly message: string } | null;
}

/** Returns a line of an input file. */
export const lineOf = (id: string, body: Fields = {}, rest: Fields = {}): string =>
  JSON.stringify({
    custom_id: id,
    method: 'POST',
    url: '/v1/completions',
    body: { model: 'default', prompt: 'Hi', max_tokens: 4, ...body },
    ...rest,
  });

/** An answer, with the fields of all its forms. */
interface Reply {
  readonly status: number;
  readonly body: Batch &
    Omit<FileObject, 'status' | 'object'> & {
      readonly error: { readonly code: string; readonly message: string; readonly param: string | null };
      readonly data: readonly { readonly id: string }[];
      readonly has_more: boolean;
      readonly deleted: boolean;
    };
}

async function replyOf(response: Response): Promise<Reply> {
  return { status: response.status, body: (await response.json()) as Reply['body'] };
}

export class BatchClient {
  readonly #worker: Pick<WorkerClient, 'request'>;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(worker: Pick<WorkerClient, 'request'>, key?: string) {
    this.#worker = worker;
    this.#headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
  }

  async call(method: string, path: string, body?: unknown): Promise<Reply> {
    const response = await this.#worker.request(path, {
      method,
      headers: { ...this.#headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return replyOf(response);
  }

  /** Sends a file as clients do; `fields` replaces the form's fields. */
  async send(
    content: string | Uint8Array<ArrayBuffer>,
    name = 'input.jsonl',
    fields: Record<string, string> = { purpose: 'batch' },
  ) {
    const form = new FormData();
    for (const [field, value] of Object.entries(fields)) form.set(field, value);
    form.set('file', new Blob([content]), name);
    const response = await this.#worker.request('/v1/files', {
      method: 'POST',
      headers: this.#headers,
      body: form,
    });
    return replyOf(response);
  }

  async upload(content: string | Uint8Array<ArrayBuffer>): Promise<FileObject> {
    const { status, body } = await this.send(content);
    if (status !== 200) throw new Error(JSON.stringify(body));
    return body as unknown as FileObject;
  }

  create(file: string, fields: Fields = {}) {
    return this.call('POST', '/v1/batches', {
      input_file_id: file,
      endpoint: '/v1/completions',
      completion_window: '24h',
      ...fields,
    });
  }

  async start(content: string | Uint8Array<ArrayBuffer>, fields: Fields = {}): Promise<Batch> {
    const { status, body } = await this.create((await this.upload(content)).id, fields);
    if (status !== 200) throw new Error(JSON.stringify(body));
    return body;
  }

  async show(id: string): Promise<Batch> {
    return (await this.call('GET', `/v1/batches/${id}`)).body;
  }

  /** Waits for a status. */
  until(id: string, ...statuses: readonly Batch['status'][]): Promise<Batch> {
    return eventually(
      () => this.show(id),
      ({ status }) => statuses.includes(status),
    );
  }

  async content(file: string | null): Promise<string> {
    if (file === null) return '';
    const response = await this.#worker.request(`/v1/files/${file}/content`, { headers: this.#headers });
    return response.text();
  }

  async records(file: string | null): Promise<LineRecord[]> {
    const lines = (await this.content(file)).split('\n').filter((line) => line !== '');
    return lines.map((line) => JSON.parse(line) as LineRecord);
  }
}
