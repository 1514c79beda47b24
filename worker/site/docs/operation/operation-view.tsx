import { useEffect, useRef } from 'preact/hooks';
import { useSession } from '../../store/session.ts';
import type { DocsState } from '../docs-state.ts';
import { type ListedOperation, type OpenApiDocument, operationsOf } from '../documents.ts';
import { Method } from '../method.tsx';
import { NotFound } from '../not-found.tsx';
import { DocumentFailure } from '../overview.tsx';
import { type ApiName, toOperation } from '../routes.ts';

interface OperationProps {
  readonly docs: DocsState;
  readonly api: ApiName;
  readonly id: string;
}

/** One operation of a document: its description, and a form that sends it. */
export function OperationView({ docs, api, id }: OperationProps) {
  const loaded = docs.documents[api].value;
  if (loaded.state === 'loading') return <p class="quiet docs-loading">Loading…</p>;
  if (loaded.state === 'failed') {
    return (
      <article class="guide">
        <h1>Reference</h1>
        <DocumentFailure message={loaded.failure.message} api={api} />
      </article>
    );
  }
  const address = toOperation(api, id);
  const listed = operationsOf(loaded.document, api).find((one) => one.address === address);
  if (listed === undefined) return <NotFound />;
  return <LoadedOperation listed={listed} document={loaded.document} />;
}

function LoadedOperation({
  listed,
  document: openApi,
}: {
  readonly listed: ListedOperation;
  readonly document: OpenApiDocument;
}) {
  const place = useRef<HTMLDivElement>(null);
  const { key } = useSession();
  useEffect(() => {
    document.title = `${listed.method} ${listed.path} · Continuo`;
    void import('./show-operation.ts').then(({ showOperation }) => {
      if (place.current) showOperation(place.current, openApi, listed, () => key.peek());
    });
  }, []);
  return (
    <article class="operation">
      <header>
        <h1>{listed.operation.summary.replace(/\.$/, '')}</h1>
        <p class="operation-address">
          <Method name={listed.method} />
          <code>{listed.path}</code>
        </p>
      </header>
      <div ref={place} />
    </article>
  );
}
