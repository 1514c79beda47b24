import type { GUIDE } from 'virtual:guide/name';
import { GROUPS, GUIDES } from 'virtual:guides';
import { useSignal } from '@preact/signals';
import { render } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { CopyButton } from '../copy/code-block.tsx';
import { NotFound } from './overview.tsx';
import { toGuide } from './routes.ts';

type Guide = typeof GUIDE;

/** The guides of all groups, in reading order. */
const ORDER = GROUPS.flatMap(({ guides }) => guides);

/** A guide, with links to its sections beside it. */
export function GuideView({ name }: { readonly name: string }) {
  const guide = useSignal<Guide | 'failed' | null>(null);
  // An address may name a property that every object has.
  const load = Object.hasOwn(GUIDES, name) ? GUIDES[name] : undefined;
  useEffect(() => {
    load?.().then(
      ({ GUIDE: loaded }) => {
        guide.value = loaded;
        document.title = `${loaded.title} · Continuo`;
      },
      () => {
        guide.value = 'failed';
      },
    );
  }, []);
  if (load === undefined) return <NotFound />;
  if (guide.value === null) return <p class="quiet docs-loading">Loading…</p>;
  if (guide.value === 'failed')
    return (
      <p class="docs-failure error-text" role="alert">
        This guide could not be loaded. Check the connection, then reload the page.
      </p>
    );
  return <LoadedGuide guide={guide.value} at={ORDER.findIndex((entry) => entry.name === name)} />;
}

/** Returns the heading that the address names; null for none, also if its escapes are malformed. */
function sectionOfHash(): HTMLElement | null {
  try {
    return document.getElementById(decodeURIComponent(location.hash.slice(1)));
  } catch {
    return null;
  }
}

/** @param at place in the reading order; -1 = none */
function LoadedGuide({ guide, at }: { readonly guide: Guide; readonly at: number }) {
  const article = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    // The build made the markup from the repository's own pages.
    article.current!.innerHTML = guide.html;
    for (const place of article.current!.querySelectorAll('.code-block > span'))
      render(<CopyButton />, place);
    sectionOfHash()?.scrollIntoView();
  }, [guide]);
  const sections = guide.headings.filter(({ id }) => id !== '');
  return (
    <div class="guide-columns">
      <div class="guide">
        <article class="guide" ref={article} />
        <nav class="guide-neighbours" aria-label="Guides before and after">
          {[at - 1, at + 1].map((index) => {
            const beside = at < 0 ? undefined : ORDER[index];
            return beside ? (
              <a key={index} class="card" href={toGuide(beside.name)}>
                <span class="quiet">{index < at ? 'Previous' : 'Next'}</span>
                <strong>{beside.title}</strong>
              </a>
            ) : (
              <span key={index} />
            );
          })}
        </nav>
      </div>
      {sections.length > 1 && (
        <nav class="guide-sections" aria-label="On this page">
          <h2>On this page</h2>
          <ul>
            {sections.map(({ id, title }) => (
              <li key={id}>
                <a href={`#${id}`}>{title}</a>
              </li>
            ))}
          </ul>
        </nav>
      )}
    </div>
  );
}
