import { useSignal } from '@preact/signals';
import { matchesWhole } from './regex-match.ts';

/** Shows for each line whether the whole line matches. */
export function RegexTester({ source }: { readonly source: string }) {
  const samples = useSignal(' two wolves.\n two wolves');
  return (
    <div class="stack">
      <label class="field stack">
        <span>Texts to test, one per line</span>
        <textarea
          rows={3}
          spellcheck={false}
          value={samples.value}
          onInput={(event) => (samples.value = event.currentTarget.value)}
        />
      </label>
      <ul class="regex-results">
        {samples.value
          .split('\n')
          .filter((line) => line !== '')
          .map((line, index) => (
            <li key={`${index} ${line}`}>
              <code>{line}</code>
              <Result matches={matchesWhole(source, line)} />
            </li>
          ))}
      </ul>
    </div>
  );
}

const Result = ({ matches }: { readonly matches: boolean | null }) =>
  matches === null ? (
    <span class="quiet">cannot be tested here</span>
  ) : (
    <strong class={matches ? '' : 'error-text'}>{matches ? 'matches' : 'does not match'}</strong>
  );
