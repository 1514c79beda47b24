import { followWithKey } from '../store/api-key.ts';
import { useSession } from '../store/session.ts';
import { SharedDialect, SharedModel } from './connection-settings.tsx';
import { PageHeader } from './page-header.tsx';
import type { ViewName } from './routes.ts';

/** The header of the views. */
export function Header({ view }: { readonly view: ViewName }) {
  const { key } = useSession();
  const docsLink = (
    <a href="/docs" onClick={(event) => followWithKey(event, key.value)}>
      Docs
    </a>
  );
  return (
    <PageHeader page="" view={view} docsLink={docsLink}>
      <SharedModel />
      <SharedDialect />
    </PageHeader>
  );
}
