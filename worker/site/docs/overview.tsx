import { GROUPS } from 'virtual:guides';
import { useEffect } from 'preact/hooks';
import { type RequestFailure, reasonOf } from '../api/request-failure.ts';
import { CodeBlock } from '../copy/code-block.tsx';
import type { DocsState, Loaded } from './docs-state.ts';
import { operationsOf } from './documents.ts';
import { type ApiName, OVERVIEW, toGuide } from './routes.ts';

/** The first page: how to send a request, all guides, all operations. */
export function Overview({ docs }: { readonly docs: DocsState }) {
  useEffect(() => {
    document.title = 'Documentation · Continuo';
  }, []);
  const base = `${location.origin}/v1`;
  return (
    <article class="guide overview">
      <h1>Documentation</h1>
      <p>
        Continuo continues texts: you send the beginning, and a base model writes what follows. New here?
        Begin with <a href={toGuide('getting-started')}>Getting started</a>. Clients of the OpenAI API work
        with the base URL <code>{base}</code> and an API key in the header <code>Authorization</code>:
      </p>
      <CodeBlock
        code={`curl ${base}/completions \\
  -H "Authorization: Bearer $KEY" \\
  -H "Content-Type: application/json" \\
  -d '{"model": "default", "prompt": "Once upon a time", "max_tokens": 30}'`}
      />
      {GROUPS.map(({ title, guides }) => (
        <section key={title}>
          <h2>{title}</h2>
          <ul class="cards">
            {guides.map((guide) => (
              <li key={guide.name}>
                <a href={toGuide(guide.name)}>{guide.title}</a>
                <span class="quiet">{guide.summary}</span>
              </li>
            ))}
          </ul>
        </section>
      ))}
      <section>
        <h2>Operations</h2>
        <OperationList loaded={docs.documents.api.value} api="api" />
      </section>
    </article>
  );
}

/** The list of the admin operations. The server shows it only to admin keys. */
export function AdminOverview({ docs }: { readonly docs: DocsState }) {
  useEffect(() => {
    document.title = 'Admin API · Continuo';
  }, []);
  return (
    <article class="guide overview">
      <h1>Admin API</h1>
      <p>
        Plans, tenants, API keys and usage. Every request needs a key with the scope <code>admin</code>, which
        the development key has. <a href={toGuide('tenants')}>Tenants</a> explains the records.
      </p>
      <OperationList loaded={docs.documents.admin.value} api="admin" />
    </article>
  );
}

function OperationList({ loaded, api }: { readonly loaded: Loaded; readonly api: ApiName }) {
  if (loaded.state === 'loading') return <p class="quiet">Loading…</p>;
  if (loaded.state === 'failed') return <DocumentFailure failure={loaded.failure} api={api} />;
  return (
    <ul class="operations">
      {operationsOf(loaded.document, api).map(({ address, method, path, operation }) => (
        <li key={address}>
          <a href={address}>
            <Method name={method} />
            <code>{path}</code>
          </a>
          <span class="quiet">{operation.summary}</span>
        </li>
      ))}
    </ul>
  );
}

interface DocumentFailureProps {
  readonly failure: RequestFailure;
  readonly api: ApiName;
}

export const DocumentFailure = ({ failure, api }: DocumentFailureProps) => (
  <div class="docs-failure" role="alert">
    <p class="error-text">The reference could not be loaded. {reasonOf(failure)}</p>
    <p>
      {api === 'admin' ? 'Enter an admin key with the button “Key” above.' : 'Reload the page to try again.'}
    </p>
  </div>
);

/** The HTTP method of an operation. */
export const Method = ({ name }: { readonly name: string }) => (
  <span class={`method method-${name.toLowerCase()}`}>{name}</span>
);

export const NotFound = () => (
  <article class="guide">
    <h1>There is no such page</h1>
    <p>
      The address may have changed. Search for it, or start at the <a href={OVERVIEW}>overview</a>.
    </p>
  </article>
);
