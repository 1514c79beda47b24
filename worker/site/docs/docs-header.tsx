import { PageHeader } from '../shell/page-header.tsx';
import { followWithKey } from '../store/api-key.ts';
import { useSession } from '../store/session.ts';
import { OVERVIEW } from './routes.ts';

/** The header of the documentation, whose views are links to the other document. */
export function DocsHeader() {
  const { key } = useSession();
  const docsLink = (
    <a href={OVERVIEW} aria-current="page">
      Docs
    </a>
  );
  return (
    <PageHeader
      page="/"
      view={null}
      onFollow={(event) => followWithKey(event, key.value)}
      docsLink={docsLink}
    />
  );
}
