import { useEffect } from 'preact/hooks';
import type { DocsState } from '../docs-state.ts';
import {
  type ListedOperation,
  type OpenApiDocument,
  type Outcome,
  operationsOf,
  resolved,
} from '../documents.ts';
import { DocumentFailure, Method, NotFound } from '../overview.tsx';
import { type ApiName, toOperation } from '../routes.ts';
import { Description } from './description.tsx';
import { type Field, fieldListsOf } from './operation-fields.ts';
import { TryIt } from './try-it.tsx';
import '../style/operation.css';

interface OperationProps {
  readonly docs: DocsState;
  readonly api: ApiName;
  readonly id: string;
}

/** One operation of a document: its fields and responses, and a form that sends it. */
export function OperationView({ docs, api, id }: OperationProps) {
  const loaded = docs.documents[api].value;
  if (loaded.state === 'loading') return <p class="quiet docs-loading">Loading…</p>;
  if (loaded.state === 'failed') {
    return (
      <article class="guide">
        <h1>Reference</h1>
        <DocumentFailure failure={loaded.failure} api={api} />
      </article>
    );
  }
  const address = toOperation(api, id);
  const listed = operationsOf(loaded.document, api).find((operation) => operation.address === address);
  if (listed === undefined) return <NotFound />;
  return <LoadedOperation listed={listed} document={loaded.document} />;
}

interface LoadedProps {
  readonly listed: ListedOperation;
  readonly document: OpenApiDocument;
}

function LoadedOperation({ listed, document: openApi }: LoadedProps) {
  const { method, path, operation } = listed;
  useEffect(() => {
    document.title = `${method} ${path} · Continuo`;
  }, []);
  const { schemas } = openApi.components;
  const body = operation.requestBody?.content['application/json'];
  return (
    <article class="operation">
      <header>
        <h1>{operation.summary.replace(/\.$/, '')}</h1>
        <p class="operation-address">
          <Method name={method} />
          <code>{path}</code>
        </p>
      </header>
      <div class="operation-columns">
        <div class="operation-description">
          {body && (
            <section aria-label="Body">
              <h2>Body</h2>
              {fieldListsOf(resolved(body.schema, schemas)).map((fields, index) => (
                <FieldList key={index} fields={fields} />
              ))}
            </section>
          )}
          <section aria-label="Responses">
            <h2>Responses</h2>
            <ul class="schema">
              {Object.entries(operation.responses).map(([status, outcome]) => (
                <ResponseItem key={status} status={status} outcome={outcome} schemas={schemas} />
              ))}
            </ul>
          </section>
        </div>
        <TryIt listed={listed} />
      </div>
    </article>
  );
}

const FieldList = ({ fields }: { readonly fields: readonly Field[] }) => (
  <ul class="schema">
    {fields.map((field) => (
      <FieldItem key={field.name} {...field} />
    ))}
  </ul>
);

const FieldItem = ({ name, type, limits, required, description, fallback, aliases, fields }: Field) => (
  <li>
    <p class="schema-head">
      <code>{name}</code>
      <span class="quiet">{[type, ...limits].join(', ')}</span>
      {required && <span class="schema-required">required</span>}
    </p>
    <p>
      <Description text={description} />
    </p>
    {fallback !== null && <p class="quiet">Default: {fallback}</p>}
    {aliases.length > 0 && (
      <p class="quiet">
        Also{' '}
        {aliases.map((alias, index) => (
          <span key={alias.name}>
            {index > 0 && ', '}
            <code>{alias.name}</code>
            {alias.note && ` (${alias.note})`}
          </span>
        ))}
      </p>
    )}
    {fields.map((list, index) => (
      <details key={index}>
        <summary>Fields of {name}</summary>
        <FieldList fields={list} />
      </details>
    ))}
  </li>
);

interface ResponseProps {
  readonly status: string;
  readonly outcome: Outcome;
  readonly schemas: OpenApiDocument['components']['schemas'];
}

/** A status. An error shows only its codes, because all errors have one form and the same headers. */
const ResponseItem = ({
  status,
  outcome: { description, content = {}, headers = {} },
  schemas,
}: ResponseProps) => (
  <li>
    <p class="schema-head">
      <code>{status}</code>{' '}
      <span class={status < '300' ? '' : 'codes'}>
        <Description text={description} />
      </span>
    </p>
    {status < '300' && (
      <>
        {Object.entries(content).map(([type, { schema }]) => (
          <details key={type}>
            <summary>Fields of {type}</summary>
            {fieldListsOf(resolved(schema, schemas)).map((fields, index) => (
              <FieldList key={index} fields={fields} />
            ))}
          </details>
        ))}
        <details>
          <summary>Headers</summary>
          <ul class="schema">
            {Object.entries(headers).map(([name, header]) => (
              <li key={name}>
                <code>{name}</code>
                <p>
                  <Description text={header.description} />
                </p>
              </li>
            ))}
          </ul>
        </details>
      </>
    )}
  </li>
);
