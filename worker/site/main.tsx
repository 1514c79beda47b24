import './style/tokens.css';
import './style/base.css';
import './style/controls.css';
import './style/probability.css';
import './style/shell.css';
import './style/playground.css';
import './style/forced-colors.css';
import { render } from 'preact';
import { openPlayground, PlaygroundContext } from './playground/playground-state.ts';
import { App } from './shell/app.tsx';
import { applyStoredTheme } from './shell/theme.ts';
import { openSession, SessionContext } from './store/session.ts';

applyStoredTheme();
const session = await openSession();
const playground = await openPlayground(session);
render(
  <SessionContext.Provider value={session}>
    <PlaygroundContext.Provider value={playground}>
      <App />
    </PlaygroundContext.Provider>
  </SessionContext.Provider>,
  document.querySelector('#app')!,
);
