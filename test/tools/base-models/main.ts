import { writeFileSync } from 'node:fs';
import { BASE_MODELS, pageOf, rowOf } from './table.ts';

/** Writes docs/base-models.md. */
writeFileSync(new URL('../../../docs/base-models.md', import.meta.url), pageOf(BASE_MODELS.map(rowOf)));
