import { expect, test } from 'vitest';
import { firstLoad } from '../../../../worker/site/build/first-load.ts';

/** Modules with what imports them when it is loaded. */
const IMPORTERS: Readonly<Record<string, readonly string[]>> = {
  'index.html': [],
  'docs.html': [],
  'main.tsx': ['index.html'],
  'docs.tsx': ['docs.html'],
  'playground.tsx': ['main.tsx'],
  'button.tsx': ['playground.tsx', 'docs.tsx', 'account.tsx'],
  'guide.tsx': ['docs.tsx'],
  'account.tsx': [],
  'table.tsx': ['account.tsx'],
};

test('what the page loads at first is in two files: for it only, and for the documentation, too', () => {
  const name = firstLoad('index.html', 'docs.html');
  const modules = { getModuleInfo: (id: string) => ({ importers: IMPORTERS[id]! }) };
  const named = Object.keys(IMPORTERS).map((id) => [id, name(id, modules)]);
  expect(Object.fromEntries(named.filter(([, file]) => file !== null))).toEqual({
    'playground.tsx': 'page',
    'button.tsx': 'shared',
  });
});
