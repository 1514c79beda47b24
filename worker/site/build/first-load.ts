interface Modules {
  getModuleInfo(id: string): { readonly importers: readonly string[] } | null;
}

/**
 * Names the file of a module that the page loads at first: one for modules of the page, and one for those of
 * the documentation, too. In 25 files, they are a quarter larger when compressed. Other modules are left to
 * the bundler. What a shared module imports is shared, so neither file needs the other in a circle.
 */
export const firstLoad =
  (page: string, docs: string) =>
  (id: string, modules: Modules): string | null => {
    const importersOf = (module: string) => modules.getModuleInfo(module)?.importers ?? [];
    const above = new Set([id]);
    for (const each of above) for (const importer of importersOf(each)) above.add(importer);
    // The document and its script stay an entry.
    const isEntry = id === page || importersOf(id).includes(page);
    if (isEntry || !above.has(page)) return null;
    return above.has(docs) ? 'shared' : 'page';
  };
