import '../style/tokens.css';
import '../style/base.css';
import '../style/controls.css';
import '../style/shell.css';
import './style/docs.css';
import './style/guide.css';
import '../style/forced-colors.css';
import { render } from 'preact';
import { applyStoredTheme } from '../shell/theme.ts';
import { openSession, SessionContext } from '../store/session.ts';
import { DocsApp } from './docs-app.tsx';
import { openDocs } from './docs-state.ts';

applyStoredTheme();
const session = await openSession();
// What remains of a key's fragment names a view of the other page.
if (location.hash === '#/') history.replaceState(null, '', location.pathname);
const docs = openDocs(session);
render(
  <SessionContext.Provider value={session}>
    <DocsApp docs={docs} />
  </SessionContext.Provider>,
  document.querySelector('#app')!,
);
