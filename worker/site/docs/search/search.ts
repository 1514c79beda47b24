import MiniSearch from 'minisearch';
import type { DocsState } from '../docs-state.ts';
import { type ListedOperation, type OpenApiDocument, operationsOf, type Schema } from '../documents.ts';
import { resolved } from '../operation/displayed-document.ts';
import type { ApiName } from '../routes.ts';
import { type Found, SEARCH_OPTIONS } from './search-options.ts';

export type FoundPlace = Pick<Found, 'id' | 'title' | 'place'>;

export interface Search {
  /** Returns the matching places, best first. */
  find(query: string): FoundPlace[];
}

/** Loads the index of the guides and adds the operations of the documents that the page has loaded. */
export async function openSearch(docs: DocsState): Promise<Search> {
  const { INDEX } = await import('virtual:guide-index');
  const index = MiniSearch.loadJSON<Found>(INDEX, SEARCH_OPTIONS);
  const added = new Set<OpenApiDocument>();
  const addDocuments = () => {
    for (const api of ['api', 'admin'] as const) {
      const loaded = docs.documents[api].value;
      if (loaded.state !== 'loaded' || added.has(loaded.document)) continue;
      added.add(loaded.document);
      for (const place of placesOf(loaded.document, api)) if (!index.has(place.id)) index.add(place);
    }
  };
  return {
    find(query) {
      addDocuments();
      return index.search(query).map(({ id, title, place }) => ({ id, title, place }));
    },
  };
}

const placesOf = (document: OpenApiDocument, api: ApiName): Found[] =>
  operationsOf(document, api).map((listed) => ({
    id: listed.address,
    title: listed.operation.summary,
    place: `${listed.method} ${listed.path}`,
    text: textOf(listed, document),
  }));

/** Returns names and descriptions of all parameters and body fields. */
function textOf({ operation }: ListedOperation, { components }: OpenApiDocument): string {
  const bodies = Object.values(operation.requestBody?.content ?? {});
  const fields = bodies.flatMap(({ schema }) =>
    Object.entries(resolved(schema, components.schemas).properties ?? {}),
  );
  const described: [string, Schema][] = (operation.parameters ?? []).map((one) => [one.name, one]);
  return [
    operation.operationId,
    ...[...described, ...fields].map(([name, { description }]) => `${name} ${description}`),
  ].join(' ');
}
