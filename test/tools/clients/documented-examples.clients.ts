import { describe, expect, inject, test } from 'vitest';
import { codeFor, examplesIn } from '../../docs/pages.ts';
import { runPython } from './python.ts';

/** Runs the documentation's Python examples, each in a separate process. */

const python = inject('python');
const { url, apiKey } = inject('served');

const runExample = (code: string): Promise<string> =>
  runPython(python!, ['-c', codeFor({ code }, url)], { env: { KEY: apiKey } }, (stdout) => stdout);

describe.skipIf(python === null)('Python examples', () => {
  test('run against the test system, and fail on an exception', async () => {
    expect(await runExample('print("http://localhost:8787")')).toBe(`${url}\n`);
    await expect(runExample('raise SystemExit(1)')).rejects.toThrow();
  });

  for (const { id, file, code } of examplesIn('python'))
    test(`${id} in ${file} runs`, async () => {
      await runExample(code);
    });
});
