import * as z from 'zod';

/**
 * A fill-in-the-middle template: the order in which a model was trained to see the text before (P) and after
 * (S) a gap. Markers are named by token text, because ids differ between models of one family.
 */
const part = z.enum(['prefix', 'P', 'suffix', 'S', 'middle']);
type TemplatePart = z.infer<typeof part>;

const REQUIRED: readonly TemplatePart[] = ['prefix', 'P', 'suffix', 'S'];

export const infillTemplate = z.strictObject({
  /** Markers and texts in reading order. */
  layout: z
    .array(part)
    .readonly()
    .refine((parts) => REQUIRED.every((name) => parts.filter((p) => p === name).length === 1), {
      error: 'needs prefix, P, suffix and S once each',
    }),
  prefix: z.string().min(1),
  suffix: z.string().min(1),
  /** Null for families that mark only prefix and suffix. */
  middle: z.string().min(1).nullable(),
  /**
   * Markers of a repository's name and of a file's name; null = other files precede the template as plain
   * text.
   */
  repository: z
    .strictObject({ name: z.string().min(1), file: z.string().min(1) })
    .nullable()
    .default(null),
  /** Further tokens that end the infill, if the vocabulary has them; markers always do. */
  stops: z.array(z.string().min(1)).readonly().default([]),
});
export type InfillTemplate = z.infer<typeof infillTemplate>;

/** Prefix first. The cached prefix stays valid while the text after the cursor changes. */
export const PSM: readonly TemplatePart[] = ['prefix', 'P', 'suffix', 'S', 'middle'];
/** Suffix first. The generated text follows P directly. */
export const SPM: readonly TemplatePart[] = ['suffix', 'S', 'prefix', 'P', 'middle'];

/** A model's setting: `auto`, `off`, or a template. */
export const infillSetting = z
  .string()
  .default('auto')
  .transform((text, context) => {
    if (text === 'auto' || text === 'off') return text;
    const parsed = z.preprocess(parseJson, infillTemplate).safeParse(text);
    if (parsed.success) return parsed.data;
    const issue = parsed.error.issues[0];
    const where = issue?.path.length ? `${issue.path.join('.')}: ` : '';
    context.addIssue(`expected auto, off or a template as JSON (${where}${issue?.message})`);
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
