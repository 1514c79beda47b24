import type { GUIDE } from 'virtual:guide/name';
import { GUIDES } from 'virtual:guides';
import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { NotFound } from './overview.tsx';

type Guide = typeof GUIDE;

/** A guide, with links to its sections beside it. */
export function GuideView({ name }: { readonly name: string }) {
  const guide = useSignal<Guide | null>(null);
  const load = GUIDES[name];
  useEffect(() => {
    void load?.().then(({ GUIDE: loaded }) => {
      guide.value = loaded;
      document.title = `${loaded.title} · Continuo`;
    });
  }, []);
  if (load === undefined) return <NotFound />;
  if (guide.value === null) return <p class="quiet docs-loading">Loading…</p>;
  return <LoadedGuide guide={guide.value} />;
}

function LoadedGuide({ guide }: { readonly guide: Guide }) {
  const article = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    // The build made the markup from the repository's own pages.
    article.current!.innerHTML = guide.html;
    document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
  }, [guide]);
  const sections = guide.headings.filter(({ id }) => id !== '');
  return (
    <div class="guide-columns">
      <article class="guide" ref={article} />
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
