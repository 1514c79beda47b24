import { clientJson } from '@continuo/shared/framing.ts';
import type { LineFault } from './input-lines.ts';
import type { LineResponse } from './send-line.ts';

/** The records of the result files, one line of JSON each, in OpenAI's form. */

export type Ending = 'completed' | 'expired' | 'cancelled';

/** Why a line has not run, by the end of its batch. */
export const UNFINISHED: Readonly<Record<Ending, LineFault>> = {
  completed: { code: 'internal_error', message: 'This request was not executed.' },
  expired: {
    code: 'batch_expired',
    message: 'This request could not be executed before the completion window expired.',
  },
  cancelled: {
    code: 'batch_cancelled',
    message: 'The batch was cancelled before this request was executed.',
  },
};

const ID = 'batch_req_';

/** Returns the record of a response. Only records of the error file have the line's number. */
export function responseRecord(
  { number, customId }: { readonly number: number; readonly customId: string },
  { status, requestId, body }: LineResponse,
  hex: string,
): string {
  const head = clientJson({ id: ID + hex, custom_id: customId, ...(status !== 200 && { line: number }) });
  const response = clientJson({ status_code: status, request_id: requestId });
  return `${head.slice(0, -1)},"response":${response.slice(0, -1)},"body":${body}},"error":null}\n`;
}

/** Returns the record of a line that got no response. */
export const faultRecord = (
  { number, customId }: { readonly number: number; readonly customId: string | null },
  { code, message }: LineFault,
  hex: string,
): string =>
  `${clientJson({ id: ID + hex, custom_id: customId, line: number, response: null, error: { code, message: `Line ${number}: ${message}` } })}\n`;
