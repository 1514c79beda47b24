import { Fragment } from 'preact';
import { useMemo } from 'preact/hooks';
import { Button } from '../controls/button.tsx';
import { ModelSelect } from '../controls/connection-selects.tsx';
import { type Column, DataTable, numberColumn } from '../controls/data-table.tsx';
import { FailureNotice } from '../playground/failure-notice.tsx';
import { offeredModels } from '../store/session.ts';
import { decimal, TINT_LEVELS } from '../tokens/probability.ts';
import { TokenName } from '../tokens/token-name.tsx';
import { type CompareState, type Sides, scoreText, withModel } from './compare-state.ts';
import { SIDE_NAMES } from './side-form.tsx';
import { type AlignedSpan, alignTokens, differenceOf } from './text-alignment.ts';

/** One given text under two models, with the difference of each token. */
export function TextComparison({ state }: { readonly state: CompareState }) {
  const { settings, scored, scoredText } = state;
  const { prompt } = settings.value;
  const results = scored.map(({ result }) => result.value);
  const isRunning = results.some(({ running }) => running);
  const [left, right] = results.map(({ samples, running }) => (running ? undefined : samples[0]));
  const spans = useMemo(
    () => (left && right ? alignTokens(scoredText.value, left.tokens, right.tokens) : []),
    [left, right, scoredText.value],
  );
  return (
    <>
      <section class="subject stack" aria-label="Text and models">
        <div class="field">
          <textarea
            rows={6}
            aria-label="Text"
            placeholder="The text that both models score"
            value={prompt}
            onInput={(event) => {
              settings.value = { ...settings.value, prompt: event.currentTarget.value };
            }}
          />
        </div>
        <div class="row">
          {SIDE_NAMES.map((name, index) => (
            <Fragment key={name}>
              <span class={`side-mark ${name}`} aria-hidden="true">
                {name}
              </span>
              <ModelSelect
                label={`Model of ${name}`}
                offered={offeredModels(state.session)}
                model={settings.value.sides[index]!.model}
                onChange={(id) => (settings.value = withModel(settings.value, index, id))}
              />
            </Fragment>
          ))}
          <Button
            class="primary"
            icon="play"
            text="Score"
            disabled={prompt === '' || isRunning}
            onClick={() => scoreText(state)}
          />
          <Button
            icon="stop"
            text="Stop"
            disabled={!isRunning}
            onClick={() => scored.map((side) => side.stop())}
          />
        </div>
      </section>
      {isRunning && <p role="status">Scoring …</p>}
      {results.map(
        ({ failure }, index) =>
          failure && <FailureNotice key={index} failure={failure} onRetry={() => scoreText(state)} />,
      )}
      {spans.length > 0 && <Differences spans={spans} />}
    </>
  );
}

const figure = (value: number | null, digits = 2): string => (value === null ? '–' : decimal(value, digits));

/** B's logprob less A's; null if one is not known. */
const gain = ({ leftLogprob, rightLogprob }: AlignedSpan): number | null =>
  leftLogprob === null || rightLogprob === null ? null : rightLogprob - leftLogprob;

/** One step per bit. */
const levelOf = (nats: number): number => Math.min(TINT_LEVELS.length, Math.floor(Math.abs(nats) / Math.LN2));

const tokensText = (tokens: AlignedSpan['left']): string =>
  tokens.length === 1 ? String(tokens[0]!.id ?? '1 token') : `${tokens.length} tokens`;

const COLUMNS: readonly Column<AlignedSpan>[] = [
  {
    title: 'Text',
    of: ({ text }) => text,
    show: ({ text }) => (
      <code>
        <TokenName name={text} whiteSpace />
      </code>
    ),
  },
  { title: 'Token of A', of: ({ left }) => tokensText(left), isNumber: true },
  { title: 'Token of B', of: ({ right }) => tokensText(right), isNumber: true },
  numberColumn('Logprob A', ({ leftLogprob }) => leftLogprob, figure),
  numberColumn('Logprob B', ({ rightLogprob }) => rightLogprob, figure),
  numberColumn('B − A', gain, figure),
];

/** The text with the differences as tints, their sums, and a list of all. */
function Differences({ spans }: { readonly spans: readonly AlignedSpan[] }) {
  const { bytes, left, right, spans: counted } = differenceOf(spans);
  const perByte: Sides<number> = [left, right].map((sum) => -sum / Math.LN2 / bytes) as [number, number];
  return (
    <>
      <p role="status" class="figures">
        {bytes === 0
          ? 'No stretch of the text has a logprob of both models.'
          : `${counted} of ${spans.length} stretches have logprobs of both. A needs ${figure(perByte[0], 3)} bits per byte, B ${figure(perByte[1], 3)}. Sum of B − A: ${figure(right - left)} nats.`}
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it */}
      <section class="token-text differences framed" aria-label="Text with differences" tabIndex={0}>
        {spans.map((span, index) => {
          const nats = gain(span);
          const level = nats === null ? 0 : levelOf(nats);
          const side = nats === null || level === 0 ? '' : nats > 0 ? 'gain' : 'loss';
          return (
            <span key={index} class={`token s${level} ${side}`} title={`B − A: ${figure(nats)} nats`}>
              {span.text}
            </span>
          );
        })}
      </section>
      <p class="quiet">
        Tinted from one bit of difference on, stronger with each bit. Underlined: less likely with B; without
        a line: more likely.
      </p>
      <DataTable caption="Differences" columns={COLUMNS} rows={spans} />
    </>
  );
}
