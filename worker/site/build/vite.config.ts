import path from 'node:path';
import { defineConfig } from 'vite';
import { requestFieldsModule } from './request-fields.ts';
import { sizeBudget } from './size-budget.ts';

/** Gzipped JavaScript that a page may load before its first view. */
const FIRST_LOAD_BYTES = 120 * 1024;

export default defineConfig({
  root: path.resolve(import.meta.dirname, '..'),
  publicDir: false,
  plugins: [requestFieldsModule(), sizeBudget(FIRST_LOAD_BYTES)],
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    target: 'es2023',
    // The Content-Security-Policy allows no data: addresses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});
