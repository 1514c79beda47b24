/** Views of the page with their titles, by their name in the fragment: `#/tree`. */
export const VIEW_TITLES = {
  '': 'Playground',
  tree: 'Tree',
  compare: 'Compare',
  account: 'Account',
  operator: 'Operator',
} as const;

export type ViewName = keyof typeof VIEW_TITLES;

export const addressOf = (view: ViewName): string => `#/${view}`;

/** Returns the view that a fragment names; the playground for all others. */
export function viewOf(hash: string): ViewName {
  const name = hash.replace(/^#\/?/, '').split('/')[0]!;
  return name in VIEW_TITLES ? (name as ViewName) : '';
}
