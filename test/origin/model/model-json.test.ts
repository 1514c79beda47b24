import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import * as z from 'zod';
import { textsOf } from '../../../origin/model/config/model-directory.ts';
import { readModelJson } from '../../../origin/model/config/model-json.ts';
import { temporaryDirectory } from './synthetic-runner.ts';

it('reads Infinity, as Python writes it, but leaves the word in texts', () => {
  const directory = temporaryDirectory();
  writeFileSync(join(directory, 'config.json'), '{"limits": [-Infinity, Infinity], "text": "\\" Infinity"}');
  const schema = z.object({ limits: z.array(z.unknown()), text: z.string() });
  expect(readModelJson(textsOf(directory), 'config.json', schema)).toEqual({
    limits: [-Infinity, Infinity],
    text: '" Infinity',
  });
});
