import * as z from 'zod';

/**
 * A fill-in-the-middle template: how a model was trained to see the text before (P) and after (S) a gap. Markers are
 * named by the text of their tokens; ids differ between models of one family.
 */
const part = z.enum(['prefix', 'P', 'suffix', 'S', 'middle']);
export type TemplatePart = z.infer<typeof part>;

const REQUIRED: readonly TemplatePart[] = ['prefix', 'P', 'suffix', 'S'];

export const infillTemplate = z.strictObject({
  /** Markers and texts in the order in which the model reads them. */
  layout: z
    .array(part)
    .readonly()
    .refine((parts) => REQUIRED.every((name) => parts.filter((p) => p === name).length === 1), {
      error: 'needs prefix, P, suffix and S once each',
    }),
  prefix: z.string().min(1),
  suffix: z.string().min(1),
  /** Null for families that mark prefix and suffix alone. */
  middle: z.string().min(1).nullable(),
  /** Further texts whose tokens end the infill, as far as the vocabulary has them; the markers always do. */
  stops: z.array(z.string().min(1)).readonly().default([]),
});
export type InfillTemplate = z.infer<typeof infillTemplate>;

/** Prefix first: the cached prompt stays valid while the text after the cursor changes. */
export const PSM: readonly TemplatePart[] = ['prefix', 'P', 'suffix', 'S', 'middle'];
/** Suffix first; the generated text follows P directly. */
export const SPM: readonly TemplatePart[] = ['suffix', 'S', 'prefix', 'P', 'middle'];

/** The model's record: `auto`, `off`, or its own template. */
export const infillSetting = z
  .string()
  .default('auto')
  .transform((text, context) => {
    if (text === 'auto' || text === 'off') return text;
    const parsed = z.preprocess(parseJson, infillTemplate).safeParse(text);
    if (parsed.success) return parsed.data;
    const issue = parsed.error.issues[0];
    const where = issue?.path.length ? `${issue.path.join('.')}: ` : '';
    context.addIssue(`neither auto, off nor a template as JSON (${where}${issue?.message})`);
    return z.NEVER;
  });
export type InfillSetting = z.infer<typeof infillSetting>;

function parseJson(text: unknown): unknown {
  try {
    return JSON.parse(String(text));
  } catch {
    return null;
  }
}
