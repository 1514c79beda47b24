import * as z from 'zod';

/**
 * Building blocks for the public request bodies. The messages of number checks are tags:
 * dialects/parse-request.ts reads from them whether the field is an integer or a decimal.
 */

export const MAX_INT32 = 2_147_483_647;

/** Maximum levels of a JSON Schema in a request. The grammar compiler accepts as many. */
export const MAX_SCHEMA_DEPTH = 256;

export const integer = (min: number, max: number = MAX_INT32) =>
  z.int('integer').min(min, 'integer').max(max, 'integer');

/** A number in a query. Text that is none keeps its type, so that the message shows it. */
export const queryInteger = (min: number, max: number) =>
  z.preprocess(
    (text) => (typeof text === 'string' && /^-?\d+$/.test(text) ? Number(text) : text),
    integer(min, max),
  );

/** A time in a request, until the year 9999; milliseconds would be later, and are refused. */
export const unixSeconds = z.int('integer').max(253_402_300_799, 'integer');

export const decimal = (min: number, max?: number) => {
  const bounded = z.number().min(min, 'decimal');
  return max === undefined ? bounded : bounded.max(max, 'decimal');
};

/**
 * A text of at most `max` characters. Zod counts UTF-16 units, of which a character outside the first plane
 * has two.
 */
export const characters = (max: number, text = z.string()) =>
  text
    .check(({ value, issues }) => {
      // A text has at most as many characters as units, so most are not counted.
      if (value.length <= max || [...value].length <= max) return;
      issues.push({ code: 'too_big', origin: 'string', maximum: max, inclusive: true, input: value });
    })
    .meta({ maxLength: max });

/** A text that is always the same. */
export const always = <T extends string>(text: T) => z.literal(text).describe(`Always '${text}'.`);

/** A field of a request that may be absent or null. */
export const optional = <T extends z.ZodType>(field: T, description: string) =>
  field.nullish().describe(description);

export const flag = (description: string) => optional(z.boolean(), description);

/** An invalid value, with the message and the error code for the caller. */
export interface Fault {
  readonly code: string;
  readonly message: string;
  /** Path below the field, e.g. `[2]`. */
  readonly path?: readonly (string | number)[];
}

/** Reports a fault as a zod issue. */
export function report(context: z.RefinementCtx, fault: Fault): void {
  context.addIssue({
    code: 'custom',
    message: fault.message,
    path: [...(fault.path ?? [])],
    params: { code: fault.code },
  });
}

/** Describes the type of a value, to complete "but got …". */
export const kindOf = (value: unknown): string =>
  value === null
    ? 'null'
    : Array.isArray(value)
      ? 'an array'
      : typeof value === 'object'
        ? 'an object'
        : `a ${typeof value}`;

/**
 * Returns the issue to report. Of integers beyond 2⁵³, zod reports its own bound, with a note, before that of
 * the field.
 */
export const firstOf = <T extends object>(issues: readonly T[]): T | undefined =>
  issues.find((issue) => !('note' in issue)) ?? issues[0];

/** Metadata key of a field with custom checks: the plain schema that documents it. */
export const DOCUMENTED_AS = 'documentedAs';

export type ReadResult<T> = { readonly value: T } | { readonly fault: Fault };

/** A required field with checks of its own. @param documented the plain schema that documents it */
export const required = <T>(field: string, documented: z.ZodType, read: (value: unknown) => ReadResult<T>) =>
  z
    .unknown()
    .transform((value, context): T => {
      const message = `Missing required parameter: '${field}'.`;
      const missing = { fault: { code: 'missing_required_parameter', message } };
      const result = value === undefined || value === null ? missing : read(value);
      if ('value' in result) return result.value;
      report(context, result.fault);
      return z.NEVER;
    })
    .meta({ [DOCUMENTED_AS]: documented });

/**
 * A list whose check stops at the first invalid element. Otherwise, a body with a million invalid elements
 * would produce a million issues.
 */
export function list<T extends z.ZodType>(
  element: T,
  bounds: { readonly min?: number; readonly max: number },
) {
  const length = z
    .array(z.unknown())
    .min(bounds.min ?? 0)
    .max(bounds.max);
  return length
    .transform((items, context): z.output<T>[] => {
      const output: z.output<T>[] = [];
      for (const [index, item] of items.entries()) {
        const parsed = element.safeParse(item, { reportInput: true });
        if (!parsed.success) {
          const issue = firstOf(parsed.error.issues);
          if (issue)
            context.issues.push({
              ...issue,
              input: issue.input,
              path: [index, ...issue.path],
            } as z.core.$ZodRawIssue);
          return z.NEVER;
        }
        output.push(parsed.data);
      }
      return output;
    })
    .meta({
      [DOCUMENTED_AS]: z
        .array(element)
        .min(bounds.min ?? 0)
        .max(bounds.max),
    });
}
