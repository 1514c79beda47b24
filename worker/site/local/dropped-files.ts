/** What the visitor drops or chooses as a model. */

export interface DroppedModel {
  readonly name: string;
  readonly files: ReadonlyMap<string, File>;
}

/** The graph that `continuo model build` writes. */
const GRAPH = 'model.onnx';
const NEEDED = [GRAPH, 'config.json', 'tokenizer.json'];

/**
 * Returns the files of a built model by name.
 * @param files of one directory, or its files
 * @throws Error naming what is no model, or what is missing
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
  return { name: folderOf(byName.get(GRAPH)!), files: byName };
}

const folderOf = ({ webkitRelativePath }: File): string =>
  webkitRelativePath.split('/').at(-2) ?? 'own-model';

/** Returns the files of a drop, also of dropped directories. */
export async function droppedFiles(transfer: DataTransfer): Promise<File[]> {
  const entries = Array.from(transfer.items, (item) => item.webkitGetAsEntry());
  const found = await Promise.all(entries.map((entry) => (entry === null ? [] : filesOf(entry))));
  return found.flat();
}

async function filesOf(entry: FileSystemEntry): Promise<File[]> {
  if (entry.isFile)
    return [
      await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject)),
    ];
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
