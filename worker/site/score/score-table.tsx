import { useSignal } from '@preact/signals';
import { type Column, DataTable, numberColumn } from '../controls/data-table.tsx';
import { Segments } from '../controls/segments.tsx';
import {
  accuracyOf,
  bestOf,
  type ChoiceScore,
  type LineResult,
  MEASURES,
  type Measure,
  scoreBy,
} from './score-results.ts';

const figure = (value: number): string => value.toFixed(2).replace('-', '−');

/** Choices of a line that its row shows; the details show all. */
const MAX_SHOWN = 6;

const columnsOf = (measure: Measure, show: (line: number) => void): readonly Column<LineResult>[] => [
  {
    title: 'Line',
    of: ({ line: { number } }) => number,
    show: ({ line: { number } }) => (
      <button type="button" class="link" onClick={() => show(number)}>
        {number}
      </button>
    ),
  },
  {
    title: 'Prompt',
    of: ({ line: { prompt } }) => prompt,
    show: ({ line: { prompt } }) => <code class="clipped">{prompt}</code>,
  },
  {
    title: 'Choices',
    of: ({ line: { choices } }) => choices.length,
    show: (result) => <RowChoices result={result} measure={measure} />,
  },
  { title: 'Answer', of: (result) => answerOf(result, measure) },
];

function RowChoices({ result, measure }: { readonly result: LineResult; readonly measure: Measure }) {
  const { line, scores, fault } = result;
  if (fault !== null) return <span class="error-text">{fault}</span>;
  const best = scores && bestOf(scores, measure);
  return (
    <>
      {line.choices.slice(0, MAX_SHOWN).map((choice, index) => (
        <span key={index} class={`score-choice ${index === best ? 'best' : ''}`}>
          {index === best && (
            <span role="img" aria-label="best: ">
              ★{' '}
            </span>
          )}
          <code>{choice}</code> {scores && figure(scoreBy(scores[index]!, measure))}
        </span>
      ))}
      {line.choices.length > MAX_SHOWN && `+${line.choices.length - MAX_SHOWN}`}
    </>
  );
}

const answerOf = ({ line: { answer }, scores }: LineResult, measure: Measure): string | null => {
  if (answer === null) return null;
  if (scores === null) return String(answer);
  return bestOf(scores, measure) === answer ? `${answer} right` : `${answer} wrong`;
};

/** The scored lines, their choices side by side with the best one marked, and the accuracy. */
export function ScoreTable({ results }: { readonly results: readonly LineResult[] }) {
  const measure = useSignal<Measure>('sum');
  const chosen = useSignal<number | null>(null);
  const details = results.find(({ line }) => line.number === chosen.value);
  return (
    <>
      <div class="row figures">
        <Segments
          label="The best choice by"
          value={measure.value}
          options={MEASURES}
          onChange={(next) => (measure.value = next)}
        />
        <Accuracies results={results} />
      </div>
      <DataTable
        caption="Scored lines"
        columns={columnsOf(measure.value, (line) => (chosen.value = line))}
        rows={results}
      />
      {details && <LineDetails result={details} measure={measure.value} />}
    </>
  );
}

function Accuracies({ results }: { readonly results: readonly LineResult[] }) {
  const { of } = accuracyOf(results, 'sum');
  if (of === 0) return null;
  const texts = MEASURES.map(([measure, name]) => {
    const { right } = accuracyOf(results, measure);
    return `${name.toLowerCase()} ${((100 * right) / of).toFixed(1)} %`;
  });
  return (
    <span role="status">
      Accuracy of {of.toLocaleString('en')} lines: {texts.join(', ')}
    </span>
  );
}

interface ChoiceRow {
  readonly choice: string;
  /** Undefined = the line has no scores yet. */
  readonly score: ChoiceScore | undefined;
  readonly marks: string;
}

const CHOICE_COLUMNS: readonly Column<ChoiceRow>[] = [
  { title: 'Choice', of: ({ choice }) => choice, show: ({ choice }) => <code>{choice}</code> },
  ...MEASURES.map(([measure, name]) =>
    numberColumn<ChoiceRow>(name, ({ score }) => (score ? scoreBy(score, measure) : null), figure),
  ),
  numberColumn('Tokens', ({ score }) => score?.tokens ?? null),
  numberColumn('Bytes', ({ score }) => score?.bytes ?? null),
  { title: 'Mark', of: ({ marks }) => marks },
];

/** All choices of one line with all measures. */
function LineDetails({ result, measure }: { readonly result: LineResult; readonly measure: Measure }) {
  const { line, scores } = result;
  const best = scores && bestOf(scores, measure);
  const rows = line.choices.map((choice, index) => {
    const marks = [index === best && '★ best', index === line.answer && 'answer'];
    return { choice, score: scores?.[index], marks: marks.filter(Boolean).join(', ') };
  });
  return (
    <section class="stack" aria-label={`Line ${line.number}`}>
      <h2>Line {line.number}</h2>
      <pre>
        <code>{line.prompt}</code>
      </pre>
      <DataTable caption="Choices of the line" columns={CHOICE_COLUMNS} rows={rows} />
    </section>
  );
}
