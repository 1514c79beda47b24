import { existsSync } from 'node:fs';
import path from 'node:path';
import { llamaCpp } from './llama-cpp.ts';
import type { Rival } from './rival.ts';
import { vllm } from './vllm.ts';

/** By name. The name is also that of its parts, and of its folder on the machine with the card. */
export const RIVALS: Readonly<Record<string, Rival>> = { vllm, 'llama-cpp': llamaCpp };

/** Returns the folder of a rival's files; null if it was not brought. */
export function filesOf(folder: string, name: string): string | null {
  const files = path.join(folder, name);
  return existsSync(files) ? files : null;
}
