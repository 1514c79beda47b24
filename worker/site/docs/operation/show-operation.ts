import '../style/operation.css';
import '../style/schema.css';
import swaggerUi from 'swagger-ui-dist/swagger-ui-es-bundle.js';
import type { ListedOperation, OpenApiDocument } from '../documents.ts';
import { displayedDocument } from './displayed-document.ts';
import { operationLayout } from './operation-layout.ts';

/** Renders one operation with Swagger UI. Requests carry the key that the page has at that time, in a header. */
export function showOperation(
  domNode: Element,
  document: OpenApiDocument,
  listed: ListedOperation,
  currentKey: () => string | null,
): void {
  swaggerUi({
    domNode,
    spec: displayedDocument(document, listed),
    layout: 'OperationLayout',
    presets: [swaggerUi.presets.apis],
    plugins: [operationLayout],
    docExpansion: 'full',
    tryItOutEnabled: true,
    defaultModelExpandDepth: 1,
    defaultModelsExpandDepth: -1,
    displayRequestDuration: true,
    persistAuthorization: false,
    syntaxHighlight: { activated: false },
    validatorUrl: null,
    // The shown curl command is that of the request before the interceptor, without the key.
    showMutatedRequest: false,
    requestInterceptor: (request) => {
      const key = currentKey();
      if (key !== null) request.headers.authorization = `Bearer ${key}`;
      return request;
    },
  });
}
