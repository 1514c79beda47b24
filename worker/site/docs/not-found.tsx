import { OVERVIEW } from './routes.ts';

export const NotFound = () => (
  <article class="guide">
    <h1>There is no such page</h1>
    <p>
      The address may have changed. Search for it, or start at the <a href={OVERVIEW}>overview</a>.
    </p>
  </article>
);
