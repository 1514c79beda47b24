import path from 'node:path';
import type { Rolldown } from 'vite';
import { ROOT } from './installation.ts';

/** Bundles the Worker into one module, as it is deployed. */
export async function bundleWorker(minify = false, entry = 'worker/index.ts'): Promise<string> {
  // Only a checkout has Vite.
  const { build } = await import('vite');
  const result = await build({
    root: ROOT,
    configFile: false,
    publicDir: false,
    logLevel: 'error',
    resolve: { conditions: ['workerd', 'worker', 'browser'] },
    ssr: { target: 'webworker', noExternal: true, external: [] },
    build: {
      write: false,
      ssr: path.join(ROOT, entry),
      minify,
      target: 'es2024',
      rolldownOptions: { external: /^cloudflare:/, output: { codeSplitting: false } },
    },
  });
  return (result as Rolldown.RolldownOutput).output[0].code;
}
