import type { TestProject } from 'vitest/node';
import { startSystem } from '../../support/system.ts';
import { hasPackage, preparePython } from './python.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The running system that every client calls. */
    served: { readonly url: string; readonly apiKey: string; readonly metricsUrl: string };
    /** An interpreter with the packages of requirements.txt; null = Python clients are skipped. */
    python: string | null;
    /** The interpreter if it has vLLM. */
    vllm: string | null;
  }
}

/** Starts the system and prepares Python once for all files. Returns the teardown. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const prepared = await preparePython();
  if ('missing' in prepared) console.log(`Python clients are skipped: ${prepared.missing}`);
  const python = 'python' in prepared ? prepared.python : null;
  project.provide('python', python);
  project.provide('vllm', python !== null && (await hasPackage(python, 'vllm')) ? python : null);
  const system = await startSystem();
  project.provide('served', { url: system.url, apiKey: system.apiKey, metricsUrl: system.metricsUrl });
  return async () => {
    await system.stop();
  };
}
