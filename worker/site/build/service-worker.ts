import { createHash } from 'node:crypto';
import type { Plugin, Rolldown } from 'vite';

/** Name of the entry in the build. */
export const SERVICE_WORKER = 'service-worker';

/** Files that the service worker keeps; a model's own files are kept when it is opened. */
const KEPT = /^assets\/.*\.(?:js|css|svg)$/;

/** Returns a document's script with all files that it may load. */
function filesBelow(bundle: Rolldown.OutputBundle, entry: string): ReadonlySet<string> {
  const files = new Set([entry]);
  for (const file of files) {
    const output = bundle[file];
    if (output?.type !== 'chunk') continue;
    for (const name of [...output.imports, ...output.dynamicImports]) files.add(name);
    for (const name of output.viteMetadata?.importedCss ?? []) files.add(name);
  }
  return files;
}

/** Gives the service worker the files of the page, without those of the documentation only. */
export const serviceWorkerFiles = (): Plugin => ({
  name: 'service-worker-files',
  enforce: 'post',
  generateBundle: {
    order: 'post',
    handler(_, bundle) {
      const outputs = Object.values(bundle);
      const chunks = outputs.filter((output) => output.type === 'chunk');
      const entryOf = (name: string) => chunks.find(({ isEntry, name: entry }) => isEntry && entry === name);
      const [page, docs, worker] = ['index', 'docs', SERVICE_WORKER].map((name) => entryOf(name)!);
      const ofPage = filesBelow(bundle, page!.fileName);
      const ofDocs = filesBelow(bundle, docs!.fileName);
      const files = Object.keys(bundle)
        .filter((file) => KEPT.test(file) && (ofPage.has(file) || !ofDocs.has(file)))
        .map((file) => `/${file}`)
        .toSorted();
      const html = bundle['index.html'];
      if (html?.type !== 'asset') return this.error('The page has no document.');
      const hash = createHash('sha256').update(html.source).update(files.join()).digest('hex').slice(0, 16);
      worker!.code = `const PAGE = ${JSON.stringify({ files, hash })};\n${worker!.code}`;
    },
  },
});
