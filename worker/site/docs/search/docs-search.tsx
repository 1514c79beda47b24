import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { useListener } from '../../controls/use-listener.ts';
import type { DocsState } from '../docs-state.ts';
import { openSearch, type Search } from './search.ts';
import type { FoundPlace } from './search-options.ts';

const MAX_RESULTS = 20;

interface SearchProps {
  readonly docs: DocsState;
  /** Shown while nothing is searched. */
  readonly children: ComponentChildren;
}

/** Searches guides and operations. The results replace the navigation. The slash key focuses the field. */
export function DocsSearch({ docs, children }: SearchProps) {
  const field = useRef<HTMLInputElement>(null);
  const query = useSignal('');
  const search = useSignal<Search | null>(null);
  useListener('keydown', (event) => {
    if (event.key !== '/' || (event.target as Element).matches('input, textarea, select')) return;
    event.preventDefault();
    field.current?.focus();
  });
  const load = () => {
    if (search.value === null) void openSearch(docs).then((opened) => (search.value = opened));
  };
  const isAsked = query.value.trim() !== '';
  /** Null while nothing is asked, or the index is not there. */
  const places = (isAsked && search.value?.find(query.value).slice(0, MAX_RESULTS)) || null;
  return (
    <search>
      <label class="field docs-search">
        <span class="visually-hidden">Search guides and operations</span>
        <input
          ref={field}
          type="search"
          placeholder="Search  /"
          autocomplete="off"
          spellcheck={false}
          value={query.value}
          onFocus={load}
          onInput={(event) => {
            load();
            query.value = event.currentTarget.value;
          }}
          onKeyDown={(event) => {
            if (event.key === 'Enter') resultsOf(event)[1]?.click();
            if (event.key === 'ArrowDown') moveFocus(event, 1);
          }}
        />
      </label>
      <p class="visually-hidden" role="status">
        {places && `${places.length} results`}
      </p>
      {places ? <Results places={places} /> : children}
    </search>
  );
}

function Results({ places }: { readonly places: readonly FoundPlace[] }) {
  if (places.length === 0) return <p class="quiet docs-none">Nothing found. Try fewer or other words.</p>;
  return (
    <ul class="docs-results" aria-label="Results">
      {places.map(({ id, title, place, snippet }) => (
        <li key={id}>
          <a
            class="docs-link"
            href={id}
            onKeyDown={(event) => {
              if (event.key === 'ArrowDown') moveFocus(event, 1);
              if (event.key === 'ArrowUp') moveFocus(event, -1);
            }}
          >
            <span>{title}</span>
            <span class="quiet">{place}</span>
            <span class="snippet">
              {snippet.map((part, index) => (index % 2 === 1 ? <mark key={index}>{part}</mark> : part))}
            </span>
          </a>
        </li>
      ))}
    </ul>
  );
}

/** The field and the results below it. */
const resultsOf = ({ currentTarget }: KeyboardEvent): HTMLElement[] => [
  ...(currentTarget as Element).closest('search')!.querySelectorAll<HTMLElement>('input, .docs-results a'),
];

/** Moves the focus between the field and the results. */
function moveFocus(event: KeyboardEvent, step: 1 | -1): void {
  const places = resultsOf(event);
  event.preventDefault();
  places[places.indexOf(event.currentTarget as HTMLElement) + step]?.focus();
}
