import * as z from 'zod';

/** How the graph of a model was made, if the origin's own builder made it. */
export const modelBuild = z.object({
  precision: z.string().describe('Precision of the weights: fp32, fp16, int8 or int4.'),
  parameters: z.int().describe('Number of parameters.'),
  source: z
    .string()
    .describe('The published model, or the name of the directory or file, that the weights come from.'),
});
export type ModelBuild = z.infer<typeof modelBuild>;
