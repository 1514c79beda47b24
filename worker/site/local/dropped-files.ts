/** What the visitor drops or chooses as a model. */

export interface DroppedModel {
  readonly name: string;
  readonly files: ReadonlyMap<string, File>;
}

/** The graph that `continuo model build` writes. */
const GRAPH = 'model.onnx';
/** WebAssembly's memory, which holds the weights, the KV cache and what a run needs. */
const MAX_GIB = 4;
const GIB = 2 ** 30;
const NEEDED = [GRAPH, 'config.json', 'tokenizer.json'];

/**
 * Returns the files of a built model by name.
 * @param files of one directory, or its files
 * @throws Error naming what is no model, what is missing, or that it is too large
 */
export function modelOf(files: readonly File[]): DroppedModel {
  const [first] = files;
  if (first === undefined) throw new Error('Nothing was dropped. Choose the directory of a model.');
  const byName = new Map(files.map((file) => [file.name, file]));
  const missing = NEEDED.filter((name) => !byName.has(name));
  if (missing.length > 0) {
    const what = files.length === 1 ? `${first.name} is no model` : `${folderOf(first)} is no model`;
    throw new Error(
      `${what}: ${missing.join(', ')} missing. Choose a directory that continuo model build has written.`,
    );
  }
  const name = folderOf(byName.get(GRAPH)!);
  const gib = files.reduce((sum, { size }) => sum + size, 0) / GIB;
  if (gib < MAX_GIB) return { name, files: byName };
  throw new Error(
    `${name} has ${gib.toFixed(1)} GiB; a browser has ${MAX_GIB} GiB for a model and its context.`,
  );
}

const folderOf = ({ webkitRelativePath }: File): string =>
  webkitRelativePath.split('/').at(-2) ?? 'own-model';

/** Returns the files of a drop, also of dropped directories. */
export async function droppedFiles(transfer: DataTransfer): Promise<File[]> {
  const entries = Array.from(transfer.items, (item) => item.webkitGetAsEntry());
  const files = await Promise.all(entries.map((entry) => (entry === null ? [] : filesOf(entry))));
  return files.flat();
}

async function filesOf(entry: FileSystemEntry): Promise<File[]> {
  if (entry.isFile) {
    const read = (entry as FileSystemFileEntry).file.bind(entry);
    const file = await new Promise<File>(read);
    // Browsers give files of a chosen directory their path, but not those of a drop.
    return [Object.defineProperty(file, 'webkitRelativePath', { value: entry.fullPath.slice(1) })];
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const files: File[] = [];
  for (;;) {
    // A call returns at most 100 of them.
    const part = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    );
    if (part.length === 0) return files;
    for (const inner of part) files.push(...(await filesOf(inner)));
  }
}
