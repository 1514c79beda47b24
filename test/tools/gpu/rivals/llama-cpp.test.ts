import { readFileSync } from 'node:fs';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { newDirectory } from '../../../support/new-directory.ts';
import { writeByteTokenizer } from '../../../support/synthetic/byte-tokenizer.ts';
import { writeSyntheticModel } from '../../../support/synthetic/synthetic-model.ts';
import { llamaCpp } from './llama-cpp.ts';

const withVariable = (name: string, value: string | undefined) => {
  vi.stubEnv(name, value);
  onTestFinished(() => {
    vi.unstubAllEnvs();
  });
};

describe("llama.cpp's server", () => {
  test('gets a whole context for each stream, a GGUF file, and the card unless a rehearsal asks for none', () => {
    const directory = newDirectory();
    const { vocabulary } = writeSyntheticModel(directory, { vocabulary: 300 });
    writeByteTokenizer(directory, vocabulary);
    const setting = { files: '/rival', directory, python: '', streams: 3, contextLength: 64 };
    withVariable('LLAMA_ARG_DEVICE', undefined);
    const { program, args, environment } = llamaCpp.server(setting, 1234);
    const optionOf = (name: string) => args[args.indexOf(name) + 1]!;
    expect(program).toBe('/rival/llama-server');
    expect(['--parallel', '--ctx-size', '--port'].map(optionOf)).toEqual(['3', '192', '1234']);
    expect(readFileSync(optionOf('--model')).toString('latin1', 0, 4)).toBe('GGUF');
    expect(environment.LLAMA_ARG_DEVICE).toBe('CUDA0');
    withVariable('LLAMA_ARG_DEVICE', 'none');
    expect(llamaCpp.server(setting, 1234).environment.LLAMA_ARG_DEVICE).toBe('none');
  });

  test('is not assembled without a compiler, and the error names what is absent', async () => {
    withVariable('PATH', newDirectory());
    await expect(llamaCpp.assemble(newDirectory(), 90)).rejects.toThrow(
      'needs git, cmake, c++, npm, python3',
    );
  });
});
