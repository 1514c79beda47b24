import MiniSearch from 'minisearch';
import type { DocsState } from '../docs-state.ts';
import { type OpenApiDocument, type Operation, operationsOf, resolved, type Schema } from '../documents.ts';
import type { ApiName } from '../routes.ts';
import { type Found, type FoundPlace, findPlaces, SEARCH_OPTIONS } from './search-options.ts';

export interface Search {
  /** Returns the matching places, best first. */
  find(query: string): FoundPlace[];
}

/**
 * Indexes the sections of the guides, and later the operations of the documents that the page has loaded. An
 * index made by the build would be twice as large as the texts.
 */
export async function openSearch(docs: DocsState): Promise<Search> {
  const { PLACES } = await import('virtual:guide-places');
  const index = new MiniSearch<Found>(SEARCH_OPTIONS);
  await index.addAllAsync(PLACES);
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
      return findPlaces(index, query);
    },
  };
}

/** Returns the places of a document's operations. */
export const placesOf = (document: OpenApiDocument, api: ApiName): Found[] =>
  operationsOf(document, api).map(({ address, method, path, operation }) => {
    const fields = fieldsOf(operation, document);
    return {
      id: address,
      title: operation.summary,
      place: `${method} ${path}`,
      names: [operation.operationId, ...fields.map(([name]) => name)].join(' '),
      text: fields.map(([, { description = '' }]) => description.replaceAll('`', '')).join(' '),
    };
  });

/** Returns all parameters and body fields. */
function fieldsOf(
  { parameters = [], requestBody }: Operation,
  { components }: OpenApiDocument,
): [string, Pick<Schema, 'description'>][] {
  const bodies = Object.values(requestBody?.content ?? {});
  return [
    ...parameters.map(({ name, description = '' }): [string, Pick<Schema, 'description'>] => [
      name,
      { description },
    ]),
    ...bodies.flatMap(({ schema }) => Object.entries(resolved(schema, components.schemas).properties ?? {})),
  ];
}
