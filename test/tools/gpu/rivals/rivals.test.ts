import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { newDirectory } from '../../../support/new-directory.ts';
import { type Rates, rivalRates } from '../served-rates.ts';
import { type Rival, withRival } from './rival.ts';
import { RIVALS } from './rivals.ts';

interface Report {
  readonly notRun: readonly string[];
}

const MAIN = new URL('../main.ts', import.meta.url).pathname;
const MADE_SERVER = new URL('./made-server.ts', import.meta.url).pathname;

const rival = (way: string): Omit<Rival, 'assemble'> => ({
  server: (_, port) => ({ program: process.execPath, args: [MADE_SERVER, `${port}`, way], environment: {} }),
  notable: /attention/,
});

const setting = { files: '', directory: '', python: '', streams: 2, contextLength: 64 };

describe('servers of others', () => {
  test('are measured as the origin is: decoding by number of streams, then closed loops', async () => {
    const seen: Rates[] = [];
    const sizes = { batches: [1, 2], promptTokens: 4, tokens: 20 };
    await rivalRates(rival('serves'), { ...setting, ...sizes }, (rates) => seen.push(rates));
    const { start, notes, ...rates } = seen.at(-1)!;
    expect(start).toMatch(/^\d+\.\d s$/);
    expect(notes).toBe('attention: none');
    expect(Object.keys(rates)).toEqual([
      '1 streams',
      '2 streams',
      '64 + 100 tokens, 2 streams',
      '512 + 128 tokens, 2 streams',
    ]);
    expect(rates['512 + 128 tokens, 2 streams']).toMatch(/^\d+ tokens\/s, .* 0 errors; .*TTFT \d/);
    // A stage that is cut keeps what it has.
    expect(seen).toHaveLength(2);
  });

  test('are ended after their use', async () => {
    let url = '';
    await withRival(
      {
        ...rival('serves'),
        server: (given, port) => {
          url = `http://127.0.0.1:${port}/health`;
          return rival('serves').server(given, port);
        },
      },
      setting,
      async () => expect((await fetch(url)).status).toBe(200),
    );
    await expect(fetch(url)).rejects.toThrow();
  });

  const use = () => Promise.reject(new Error('used'));
  test('that end before they are ready fail with what they wrote', async () => {
    const ended = withRival(rival('ends'), setting, use);
    await expect(ended).rejects.toThrow(/ended before it was ready. Exit code: 3. .*\nthere is no card/);
  });

  test('that do not get ready fail after their time', async () => {
    const late = withRival(rival('never ready'), setting, use, 1500);
    await expect(late).rejects.toThrow('not ready within 1.5 s');
  });

  test('that end while they are measured fail', async () => {
    const rates = rivalRates(
      rival('ends in use'),
      { ...setting, batches: [1], promptTokens: 4, tokens: 4 },
      use,
    );
    await expect(rates).rejects.toThrow('Exit code: 4');
  });

  test('that cannot be started fail with the reason', async () => {
    const server = () => ({ program: '/no/such/program', args: [], environment: {} });
    await expect(withRival({ server, notable: /x/ }, setting, use)).rejects.toThrow('ENOENT');
  });

  test('that were not brought are named in the report', async () => {
    const out = newDirectory();
    const args = ['--parts', 'rivals', '--providers', 'cpu', '--model', 'one-layer', '--rivals', out];
    await promisify(execFile)(process.execPath, [MAIN, ...args, '--out', out]);
    const { notRun } = JSON.parse(readFileSync(path.join(out, 'report.json'), 'utf8')) as Report;
    expect(notRun).toEqual(Object.keys(RIVALS).map((name) => `${name}: its files are not in ${out}`));
  });
});
