import * as z from 'zod';

/** What the API documents say of a schema beside its fields. */
interface Documentation {
  /** Name among the document's components; absent = the document shows the schema in its place. */
  readonly name?: string;
  /** Example of a response, or the only one of a request. */
  readonly example?: unknown;
  /** Examples of a request, by name. */
  readonly examples?: Readonly<Record<string, unknown>>;
}

/** The documentation of the schemas that operations name. */
export const documented = z.registry<Documentation>();
