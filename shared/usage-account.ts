import * as z from 'zod';
import { finishReason, usage } from './generation.ts';

/** GET /usage?account=… of the origin: the usage of a generation; null for an unknown account. */
export const usageAccount = z
  .object({
    usage,
    /** Of the finished choices, in the order in which they finished. */
    finishReasons: z.array(finishReason).default([]),
    ended: z.boolean(),
    /** Milliseconds from the arrival of the request to its first token; null before the first token. */
    firstTokenMs: z.number().min(0).nullable().default(null),
  })
  .nullable();
export type UsageAccount = NonNullable<z.infer<typeof usageAccount>>;

/** GET /usage?under=… of the origin: the accounts whose names begin with this text; null from an origin without lists. */
export const accountList = z
  .array(
    z.object({
      account: z.string(),
      model: z.string(),
      usage,
      /** Milliseconds since the request arrived. */
      ageMs: z.number().min(0),
    }),
  )
  .nullable();
export type ListedAccount = NonNullable<z.infer<typeof accountList>>[number];
