import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import type { PromptToken } from '../api/completion-stream.ts';
import type { WholeChoice } from '../api/whole-choices.ts';
import { Button } from '../controls/button.tsx';
import { OpenInMenu } from '../copy/open-in-menu.tsx';
import { FailureNotice } from '../playground/failure-notice.tsx';
import type { PlacedTokens } from '../tokens/placed-tokens.ts';
import { decimal, percent } from '../tokens/probability.ts';
import { TokenList } from '../tokens/token-list.tsx';
import { type CompareState, compare } from './compare-state.ts';
import { logLikelihood, type Side } from './comparison.ts';
import { Distributions } from './distributions.tsx';
import { SIDE_NAMES } from './side-form.tsx';
import { type TokenDifferences, tokenDifferences } from './token-differences.ts';

/** Both answers side by side, their differences, and the distributions of all samples. */
export function Completions({ state }: { readonly state: CompareState }) {
  const { sides, sample } = state;
  const [left, right] = sides.map(({ result }) => result.value.samples[sample.value]);
  const differences = useMemo(() => tokenDifferences(names(left), names(right)), [left, right]);
  return (
    <>
      <Verdict state={state} left={left} right={right} differences={differences} />
      <div class="sides">
        <CompletionPanel state={state} side={sides[0]} index={0} shown={left} marks={differences.left} />
        <CompletionPanel state={state} side={sides[1]} index={1} shown={right} marks={differences.right} />
      </div>
      <Distributions sides={[sides[0].result.value.samples, sides[1].result.value.samples]} />
    </>
  );
}

const names = (choice: WholeChoice | undefined): readonly string[] =>
  choice?.tokens.map(({ name }) => name) ?? [];

interface VerdictProps {
  readonly state: CompareState;
  readonly left: WholeChoice | undefined;
  readonly right: WholeChoice | undefined;
  readonly differences: TokenDifferences;
}

/** What differs in the shown samples, and the choice of the sample. */
function Verdict({ state, left, right, differences: { equal, first } }: VerdictProps) {
  const { sample, sides } = state;
  const count = Math.max(...sides.map(({ result }) => result.value.samples.length));
  const step = (by: number) => () => {
    sample.value = Math.min(count - 1, Math.max(0, sample.value + by));
  };
  const totals = [left, right].map((choice) => choice?.tokens.length ?? 0);
  const verdict =
    first === null
      ? 'Both answers have the same tokens.'
      : `${equal} tokens in common, of ${totals.join(' and ')}. The first difference is token ${first + 1}. Underlined tokens are in one answer only.`;
  return (
    <div class="compare-verdict row spread">
      <p role="status" class="figures">
        {left && right ? verdict : 'Waiting for both answers …'}
      </p>
      {count > 1 && (
        <div class="row figures">
          <Button text="Previous" disabled={sample.value === 0} onClick={step(-1)} />
          <span>
            Sample {sample.value + 1} of {count}
          </span>
          <Button text="Next" disabled={sample.value >= count - 1} onClick={step(1)} />
        </div>
      )}
    </div>
  );
}

interface CompletionPanelProps {
  readonly state: CompareState;
  readonly side: Side;
  readonly index: 0 | 1;
  readonly shown: WholeChoice | undefined;
  readonly marks: readonly boolean[];
}

function CompletionPanel({ state, side, index, shown, marks }: CompletionPanelProps) {
  const { running, failure, usage } = side.result.value;
  const cursor = useSignal<PlacedTokens | null>(null);
  const name = SIDE_NAMES[index];
  const differing = new Set<PromptToken>(shown?.tokens.filter((_, at) => marks[at]));
  return (
    <section class="answer framed" aria-label={`Answer of ${name}`} aria-busy={running}>
      {shown ? (
        <div class="token-text">
          <TokenList
            content={shown}
            label={`Tokens of ${name}`}
            cursor={cursor}
            isMarked={(token) => differing.has(token)}
          />
        </div>
      ) : (
        <p class="quiet">{running ? 'Waiting for the first token …' : 'No answer.'}</p>
      )}
      {failure && <FailureNotice failure={failure} onRetry={() => compare(state, side)} />}
      {shown && (
        <p class="answer-figures quiet figures">
          <span class={`side-mark ${name}`} aria-hidden="true">
            {name}
          </span>
          <span>
            {facts(shown, running).join(' · ')}
            {usage && ` · ${usage.cachedTokens} of ${usage.promptTokens} prompt tokens cached`}
          </span>
          <OpenInMenu
            label={`Open ${name} in`}
            from="compare"
            parts={() => [state.asked.peek()[index], shown]}
          />
        </p>
      )}
    </section>
  );
}

function facts(choice: WholeChoice, running: boolean): string[] {
  const sum = logLikelihood(choice);
  const { length } = choice.tokens;
  return [
    `${length} tokens`,
    ...(sum === null ? [] : [`log-likelihood ${decimal(sum)}`, `mean probability ${percent(sum / length)}`]),
    choice.finishReason ?? (running ? 'streaming' : 'stopped'),
  ];
}
