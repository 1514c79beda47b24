import './style/tokens.css';
import './style/base.css';
import './style/controls.css';
import './style/probability.css';
import './style/shell.css';
import { render } from 'preact';
import { App } from './shell/app.tsx';
import { applyStoredTheme } from './shell/theme.ts';
import { openSession, SessionContext } from './store/session.ts';

applyStoredTheme();
const session = await openSession();
render(
  <SessionContext.Provider value={session}>
    <App />
  </SessionContext.Provider>,
  document.querySelector('#app')!,
);
