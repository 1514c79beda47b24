import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { errorCode } from '@continuo/shared/error-details.ts';
import type { ModelTexts } from './model-json.ts';

/** Returns the text files of a model directory. */
export const textsOf = (directory: string): ModelTexts => ({
  directory,
  read: (file) => {
    try {
      return readFileSync(join(directory, file), 'utf8');
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return undefined;
      throw error;
    }
  },
});
