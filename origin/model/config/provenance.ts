import { modelBuild } from '@continuo/shared/origin-model.ts';
import * as z from 'zod';
import { type ModelTexts, readModelJson } from './model-json.ts';

/** The file in a built model directory that says where the model came from. */
export const PROVENANCE_FILE = 'continuo.json';

const provenance = modelBuild.extend({
  id: z.string().min(1),
  modelType: z.string(),
  /** Differs for every content, precision, adapter and version of the builder; absent = not known. */
  build: z.string().optional(),
});
export type Provenance = z.infer<typeof provenance>;

/** Returns null if another tool made the directory. @throws ModelError */
export const readProvenance = (texts: ModelTexts): Provenance | null =>
  readModelJson(texts, PROVENANCE_FILE, provenance) ?? null;
