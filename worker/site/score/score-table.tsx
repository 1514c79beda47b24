import { useSignal } from '@preact/signals';
import { Segments } from '../controls/segments.tsx';
import { type VirtualColumn, VirtualTable } from '../controls/virtual-table.tsx';
import { accuracyOf, bestOf, type LineResult, MEASURES, type Measure, scoreBy } from './score-results.ts';

const figure = (value: number): string => value.toFixed(2).replace('-', '−');

/** Choices of a line that its row shows; the details show all. */
const MAX_SHOWN = 6;

const columnsOf = (measure: Measure, show: (line: number) => void): readonly VirtualColumn<LineResult>[] => [
  {
    title: 'Line',
    width: '72px',
    isNumber: true,
    show: ({ line: { number } }) => (
      <button type="button" class="line-button" onClick={() => show(number)}>
        {number}
      </button>
    ),
  },
  { title: 'Prompt', width: '28%', show: ({ line: { prompt } }) => <code>{prompt}</code> },
  { title: 'Choices', width: 'auto', show: (result) => <RowChoices result={result} measure={measure} /> },
  { title: 'Answer', width: '88px', show: (result) => answerOf(result, measure) },
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

const answerOf = ({ line: { answer }, scores }: LineResult, measure: Measure): string => {
  if (answer === null) return '–';
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
      <VirtualTable
        label="Scored lines"
        columns={columnsOf(measure.value, (line) => (chosen.value = line))}
        rows={results}
        takesFocus={false}
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

/** All choices of one line with all measures. */
function LineDetails({ result, measure }: { readonly result: LineResult; readonly measure: Measure }) {
  const { line, scores } = result;
  const best = scores && bestOf(scores, measure);
  return (
    <section class="score-details" aria-label={`Line ${line.number}`}>
      <h2>Line {line.number}</h2>
      <pre>
        <code>{line.prompt}</code>
      </pre>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it */}
      <section class="score-frame" aria-label="Choices of the line" tabIndex={0}>
        <table class="figures">
          <thead>
            <tr>
              {['Choice', 'Sum', 'Per token', 'Per byte', 'Tokens', 'Bytes', ''].map((title) => (
                <th key={title} scope="col">
                  {title || <span class="visually-hidden">Mark</span>}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {line.choices.map((choice, index) => {
              const score = scores?.[index];
              const marks = [index === best && '★ best', index === line.answer && 'answer'];
              return (
                <tr key={index}>
                  <td>
                    <code>{choice}</code>
                  </td>
                  {MEASURES.map(([name]) => (
                    <td key={name}>{score ? figure(scoreBy(score, name)) : '–'}</td>
                  ))}
                  <td>{score?.tokens ?? '–'}</td>
                  <td>{score?.bytes ?? '–'}</td>
                  <td>{marks.filter(Boolean).join(', ')}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </section>
    </section>
  );
}
