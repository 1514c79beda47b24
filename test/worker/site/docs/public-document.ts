import path from 'node:path';
import type { OpenApiDocument } from '../../../../worker/site/docs/documents.ts';

const WORKER = path.resolve(import.meta.dirname, '../../../../worker');

/** Returns the OpenAPI document. Imports the Worker without its types, because its platform is no browser. */
export async function publicDocument(): Promise<OpenApiDocument> {
  const { OPERATION_GROUPS, PUBLIC_API } = await import(path.join(WORKER, 'routes.ts'));
  const { openApiDocument } = await import(path.join(WORKER, 'operations/document.ts'));
  return openApiDocument(OPERATION_GROUPS, PUBLIC_API);
}
