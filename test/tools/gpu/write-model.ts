import { benchModels } from '../bench/models.ts';

/** Writes the models that have these names, unless they are there. */
for (const name of process.argv.slice(2)) benchModels[name]?.directory();
