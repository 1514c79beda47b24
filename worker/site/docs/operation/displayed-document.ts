import {
  type ListedOperation,
  type OpenApiDocument,
  type Operation,
  resolved,
  type Schema,
} from '../documents.ts';

/**
 * Returns the document of one operation, shorter than the server's. Types of request fields do not repeat that null means
 * absent. An error status shows only its codes, because all errors have one form and the same headers.
 */
export function displayedDocument(document: OpenApiDocument, listed: ListedOperation): unknown {
  const { method, path, operation } = listed;
  const { requestBody } = operation;
  const { schemas } = document.components;
  const responses = Object.fromEntries(
    Object.entries(operation.responses).map(([status, response]) => [
      status,
      status.startsWith('2') ? response : { description: response.description.replaceAll(/\w+/g, '`$&`') },
    ]),
  );
  const shown: Operation = {
    ...operation,
    responses,
    ...(requestBody && {
      requestBody: {
        ...requestBody,
        content: Object.fromEntries(
          Object.entries(requestBody.content).map(([type, content]) => [
            type,
            { ...content, schema: withoutNull(resolved(content.schema, schemas)) as Schema },
          ]),
        ),
      },
    }),
  };
  return { ...document, tags: [], paths: { [path]: { [method.toLowerCase()]: shown } } };
}

/** Removes null from the types of all fields. */
function withoutNull(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNull);
  if (typeof value !== 'object' || value === null) return value;
  const { anyOf, ...rest } = value as Schema;
  const forms = anyOf?.filter(({ type }) => type !== 'null') ?? [];
  const [only] = forms;
  const merged =
    forms.length === 1 && only ? { ...only, ...rest } : forms.length > 1 ? { ...rest, anyOf: forms } : rest;
  return Object.fromEntries(
    Object.entries(merged).map(([name, part]) => [
      name,
      name === 'type' && Array.isArray(part) ? otherTypes(part) : withoutNull(part),
    ]),
  );
}

function otherTypes(types: readonly unknown[]): unknown {
  const others = types.filter((type) => type !== 'null');
  return others.length === 1 ? others[0] : others;
}
