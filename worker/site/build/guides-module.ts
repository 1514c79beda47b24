import type { Plugin } from 'vite';
import { toGuide } from '../docs/routes.ts';
import type { Found } from '../docs/search/search-options.ts';
import { type Guide, readGroups, readGuides, readPictures } from './guides.ts';

/** Modules: the list of guides, one module per guide, and what the search finds in all guides. */
const LIST = 'virtual:guides';
const PLACES = 'virtual:guide-places';
const GUIDE = 'virtual:guide/';

const json = (value: unknown): string => JSON.stringify(value);

function listOf(directory: string, guides: readonly Guide[]): string {
  const loaders = guides.map(({ name }) => `${json(name)}: () => import(${json(GUIDE + name)})`);
  return `export const GROUPS = ${json(readGroups(directory))};\nexport const GUIDES = {${loaders.join(',')}};`;
}

/** Returns all sections, as the search finds them. */
export const placesOfGuides = (guides: readonly Guide[]): Found[] =>
  guides.flatMap(({ name, title, sections }) =>
    sections.map((section) => ({
      id: toGuide(name) + (section.id === '' ? '' : `#${section.id}`),
      title: section.title,
      place: section.id === '' ? 'Guide' : title,
      names: '',
      text: section.text,
    })),
  );

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
    resolveId: (id) => (id === LIST || id === PLACES || id.startsWith(GUIDE) ? `\0${id}` : null),
    load(id) {
      if (id === `\0${LIST}`) return listOf(directory, guides);
      if (id === `\0${PLACES}`) return `export const PLACES = ${json(placesOfGuides(guides))};`;
      if (!id.startsWith(`\0${GUIDE}`)) return null;
      const { title, html, sections } = guides.find(({ name }) => name === id.slice(GUIDE.length + 1))!;
      const headings = sections.map((section) => ({ id: section.id, title: section.title }));
      return `export const GUIDE = ${json({ title, html, headings })};`;
    },
  };
}
