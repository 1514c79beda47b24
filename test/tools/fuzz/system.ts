import { rmSync } from 'node:fs';
import { newDirectory } from '../../support/new-directory.ts';
import { writeByteTokenizer } from '../../support/synthetic/byte-tokenizer.ts';
import { writeSyntheticModel } from '../../support/synthetic/synthetic-model.ts';
import { type System, startSystem } from '../../support/system.ts';

const VOCABULARY = 320;

/** The whole product with a random model of two layers, whose generations take milliseconds. */
export async function startTinySystem(): Promise<System> {
  const directory = newDirectory();
  writeSyntheticModel(directory, { vocabulary: VOCABULARY, contextLength: 128 });
  writeByteTokenizer(directory, VOCABULARY);
  const system = await startSystem({ CONTINUO_MODEL_DIR: directory, CONTINUO_SLOTS: '16' });
  const stop = async () => {
    const code = await system.stop();
    rmSync(directory, { recursive: true, force: true });
    return code;
  };
  return { ...system, stop };
}
