import { chooseFile } from '../../controls/choose-file.ts';
import { saveFile } from '../../controls/save-file.ts';
import type { Tree } from '../tree.ts';
import { ImportError } from './json-reader.ts';

/** Larger files would block the page for seconds. */
const MAX_BYTES = 100 * 1024 * 1024;

/** Offers a tree as a file to save. */
export async function saveAsFile(tree: Tree, format: 'json' | 'md'): Promise<void> {
  const [text, type] =
    format === 'json'
      ? [(await import('./tree-json.ts')).exportJson(tree), 'application/json']
      : [(await import('./tree-markdown.ts')).exportMarkdown(tree), 'text/markdown'];
  const name = tree.name.replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-|-$/g, '') || 'tree';
  saveFile(`${name}.${format}`, new Blob([text], { type }));
}

/** Asks for an exported tree. Resolves with null if the visitor chooses no file. */
export async function chooseTree(): Promise<ReadTree | null> {
  const file = await chooseFile('.json,application/json');
  return file && readTree(file);
}

type ReadTree = { readonly tree: Tree } | { readonly refused: string };

async function readTree(file: File): Promise<ReadTree> {
  if (file.size > MAX_BYTES)
    return { refused: `The file has ${Math.ceil(file.size / 1024 / 1024)} MB; the limit is 100 MB.` };
  try {
    const { importJson } = await import('./tree-json.ts');
    return { tree: importJson(await file.text()) };
  } catch (thrown) {
    if (thrown instanceof ImportError) return { refused: thrown.message };
    return { refused: `The file could not be read: ${String(thrown)}` };
  }
}
