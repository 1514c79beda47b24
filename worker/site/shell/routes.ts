import type { ComponentType } from 'preact';
import { Playground } from '../playground/playground.tsx';

/** Views of the page by their name in the fragment: `#/tree`. All but the first are loaded when they are shown. */
export const VIEWS = {
  '': { title: 'Playground', load: async () => Playground },
  tree: { title: 'Tree', load: async () => (await import('../tree/tree-view.tsx')).TreeView },
  compare: { title: 'Compare', load: async () => (await import('../compare/compare-view.tsx')).CompareView },
} as const satisfies Record<string, { title: string; load: () => Promise<ComponentType> }>;

export type ViewName = keyof typeof VIEWS;

export const addressOf = (view: ViewName): string => `#/${view}`;

/** Returns the view that a fragment names; the playground for all others. */
export function viewOf(hash: string): ViewName {
  const name = hash.replace(/^#\/?/, '').split('/')[0]!;
  return name in VIEWS ? (name as ViewName) : '';
}
