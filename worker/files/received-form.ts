import { ApiError } from '@continuo/shared/errors.ts';
import { bodyPieces } from '../http/request-body.ts';
import type { RequestContext } from '../http/request-context.ts';
import { boundaryOf, type FormPart, formParts, shortText } from './form-data.ts';
import { PART_BYTES, type PartedObject } from './parted-object.ts';

const MAX_FIELD_BYTES = 1_024;

interface FormOptions {
  /** Name of the field with the content. */
  readonly field: string;
  /** Bytes of the content. */
  readonly maxBytes: number;
  /** Returns the object for the content, which has this file name. */
  readonly open: (filename: string) => PartedObject;
}

/** Streams a form's content to R2, and returns its other fields. The caller completes the object. */
export async function receiveForm(
  request: Request,
  context: RequestContext,
  { field, maxBytes, open }: FormOptions,
): Promise<{ readonly fields: ReadonlyMap<string, string>; readonly object: PartedObject }> {
  const boundary = boundaryOf(request);
  context.heldBody.take(context.caller.principal?.tenant.id ?? '', PART_BYTES);
  const fields = new Map<string, string>();
  let object: PartedObject | null = null;
  try {
    for await (const part of formParts(bodyPieces(request, context), boundary)) {
      if (part.name !== field) fields.set(part.name, await shortText(part.content, MAX_FIELD_BYTES));
      else if (object === null) await fill((object = open(part.filename ?? '')), part, maxBytes);
      else throw new ApiError('invalid_value', `Invalid '${field}': expected one file.`, { param: field });
    }
    if (object !== null) return { fields, object };
    throw new ApiError('missing_required_parameter', `Missing required parameter: '${field}'.`, {
      param: field,
    });
  } catch (thrown) {
    await object?.abort();
    throw thrown;
  }
}

async function fill(object: PartedObject, { name, content }: FormPart, maxBytes: number): Promise<void> {
  for await (const bytes of content) {
    if (object.size + bytes.length > maxBytes) {
      const message = `Invalid '${name}': larger than the limit of ${maxBytes} bytes.`;
      throw new ApiError('request_too_large', message, { param: name });
    }
    await object.write(bytes);
  }
}
