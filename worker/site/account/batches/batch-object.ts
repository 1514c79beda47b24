/** A batch, as far as it is shown. Times are Unix seconds. */
export interface BatchObject {
  readonly id: string;
  readonly endpoint: string;
  readonly errors: {
    readonly data: readonly { readonly message: string; readonly line: number | null }[];
  } | null;
  readonly status: string;
  readonly output_file_id: string | null;
  readonly error_file_id: string | null;
  readonly created_at: number;
  readonly expires_at: number;
  readonly request_counts: { readonly total: number; readonly completed: number; readonly failed: number };
  readonly metadata: Readonly<Record<string, string>> | null;
}

export interface BatchPage {
  readonly data: readonly BatchObject[];
  readonly has_more: boolean;
}

const ENDED: readonly string[] = ['failed', 'completed', 'expired', 'cancelled'];

export const isRunning = ({ status }: BatchObject): boolean => !ENDED.includes(status);

/** Whether the server can still cancel it. */
export const canCancel = ({ status }: BatchObject): boolean => ['validating', 'in_progress'].includes(status);

/** Name of the metadata of a batch that the page has made, with the name of its file. */
export const FILE_NAME = 'file';
