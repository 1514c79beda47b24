import MiniSearch from 'minisearch';
import type { Plugin } from 'vite';
import { toGuide } from '../docs/routes.ts';
import { type Found, SEARCH_OPTIONS } from '../docs/search/search-options.ts';
import { type Guide, readGroups, readGuides, readPictures } from './guides.ts';

/** Modules: the list of guides, one module per guide, and the search index of all guides. */
const LIST = 'virtual:guides';
const INDEX = 'virtual:guide-index';
const GUIDE = 'virtual:guide/';

const json = (value: unknown): string => JSON.stringify(value);

function listOf(directory: string, guides: readonly Guide[]): string {
  const loaders = guides.map(({ name }) => `${json(name)}: () => import(${json(GUIDE + name)})`);
  return `export const GROUPS = ${json(readGroups(directory))};\nexport const GUIDES = {${loaders.join(',')}};`;
}

/** Returns the search index of all sections, as MiniSearch stores it. */
export function searchIndexOf(guides: readonly Guide[]): string {
  const index = new MiniSearch<Found>(SEARCH_OPTIONS);
  for (const { name, title, sections } of guides) {
    index.addAll(
      sections.map((section) => ({
        id: toGuide(name) + (section.id === '' ? '' : `#${section.id}`),
        title: section.title,
        place: section.id === '' ? 'Guide' : title,
        names: '',
        text: section.text,
      })),
    );
  }
  return json(index);
}

/** Serves the documentation to the page. */
export function guidesModule(directory: string): Plugin {
  let guides: readonly Guide[] = [];
  return {
    name: 'guides',
    buildStart() {
      guides = readGuides(directory);
      for (const { fileName, content: source } of readPictures(directory).values())
        this.emitFile({ type: 'asset', fileName, source });
    },
    resolveId: (id) => (id === LIST || id === INDEX || id.startsWith(GUIDE) ? `\0${id}` : null),
    load(id) {
      if (id === `\0${LIST}`) return listOf(directory, guides);
      if (id === `\0${INDEX}`) return `export const INDEX = ${json(searchIndexOf(guides))};`;
      if (!id.startsWith(`\0${GUIDE}`)) return null;
      const { title, html, sections } = guides.find(({ name }) => name === id.slice(GUIDE.length + 1))!;
      const headings = sections.map((section) => ({ id: section.id, title: section.title }));
      return `export const GUIDE = ${json({ title, html, headings })};`;
    },
  };
}
