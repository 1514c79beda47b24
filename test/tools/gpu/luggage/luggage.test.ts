import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { newDirectory } from '../../../support/new-directory.ts';
import { writeParts } from './luggage.ts';

const SCRIPT = readFileSync(new URL('./luggage.sh', import.meta.url));

/** Luggage with an engine of one part and a rival of two. */
function madeLuggage() {
  const directory = newDirectory();
  for (const [name, parts] of [
    ['engine', 1],
    ['vllm', 2],
  ] as const) {
    const files = newDirectory();
    writeFileSync(path.join(files, 'name'), name);
    const archive = execFileSync('tar', ['-cJf', '-', '-C', files, '.']);
    writeParts(directory, name, archive, Math.ceil(archive.length / parts));
  }
  writeFileSync(path.join(directory, 'luggage.sh'), SCRIPT);
  const luggage = newDirectory();
  const take = (parts: string) =>
    execFileSync('sh', [path.join(directory, 'luggage.sh'), '--parts', parts], {
      encoding: 'utf8',
      env: { ...process.env, LUGGAGE: luggage, OUT: newDirectory() },
      stdio: 'pipe',
    });
  const unpacked = (folder: string) => readFileSync(path.join(luggage, folder, 'name'), 'utf8');
  return { directory, take, unpacked };
}

describe('luggage', () => {
  test('unpacks the engine and a rival into folders of their own, each once it has all of its parts', () => {
    const { take, unpacked } = madeLuggage();
    expect(take('vllm-1')).toContain('missing: vllm-2');
    expect(take('engine-1,vllm-2')).toMatch(/unpacked in .*\/run\nunpacked in .*\/rivals\/vllm\n/);
    expect([unpacked('run'), unpacked('rivals/vllm')]).toEqual(['engine', 'vllm']);
  });

  test('refuses a damaged part', () => {
    const { directory, take } = madeLuggage();
    writeFileSync(path.join(directory, 'vllm-2'), 'other bytes');
    expect(() => take('vllm-1,vllm-2')).toThrow('vllm-2 is damaged');
  });
});
