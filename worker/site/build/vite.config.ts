import path from 'node:path';
import { defineConfig } from 'vite';
import { firstLoad } from './first-load.ts';
import { guidesModule } from './guides-module.ts';
import { requestFieldsModule } from './request-fields.ts';
import { SERVICE_WORKER, serviceWorkerFiles } from './service-worker.ts';
import { sizeBudget } from './size-budget.ts';

/** Gzipped JavaScript that a page may load before its first view. */
const FIRST_LOAD_BYTES = 40 * 1024;
/** Gzipped bytes of a file that is loaded later, such as the thread of the model in the browser: 0.19 MB. */
const LAZY_FILE_BYTES = 200 * 1024;

const ROOT = path.resolve(import.meta.dirname, '../../..');
const SITE = path.join(ROOT, 'worker/site');
const PAGE = path.join(SITE, 'index.html');
const DOCS = path.join(SITE, 'docs/index.html');

/** The Worker serves the files of the built-in model only where an origin has it, and knows them by name. */
const assetFileNames = ({ originalFileNames }: { readonly originalFileNames: readonly string[] }): string => {
  const [, model] = /origin\/models\/([^/]+)\//.exec(originalFileNames[0] ?? '') ?? [];
  return model === undefined ? 'assets/[name]-[hash][extname]' : `assets/${model}-[name]-[hash][extname]`;
};

export default defineConfig({
  root: SITE,
  publicDir: false,
  plugins: [
    requestFieldsModule(),
    guidesModule(path.join(ROOT, 'docs')),
    sizeBudget(FIRST_LOAD_BYTES, LAZY_FILE_BYTES),
    serviceWorkerFiles(),
  ],
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  worker: { format: 'es', rolldownOptions: { output: { assetFileNames } } },
  build: {
    target: 'es2023',
    // The Content-Security-Policy allows no data: addresses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      input: {
        index: PAGE,
        docs: DOCS,
        [SERVICE_WORKER]: path.join(SITE, 'offline/service-worker.ts'),
      },
      output: {
        assetFileNames,
        codeSplitting: { includeDependenciesRecursively: false, groups: [{ name: firstLoad(PAGE, DOCS) }] },
        // Its address never changes, so that browsers find a new one there.
        entryFileNames: ({ name }) =>
          name === SERVICE_WORKER ? `${SERVICE_WORKER}.js` : 'assets/[name]-[hash].js',
      },
    },
  },
});
