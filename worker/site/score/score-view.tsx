import './score.css';
import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { LOCAL_SUFFIX } from '../api/client.ts';
import { Bar } from '../controls/bar.tsx';
import { Button } from '../controls/button.tsx';
import { ModelSelect } from '../controls/connection-selects.tsx';
import { Fault } from '../controls/fault.tsx';
import { saveFile } from '../controls/save-file.ts';
import { FailureNotice, useCountdown } from '../playground/failure-notice.tsx';
import { offeredModels, useSession } from '../store/session.ts';
import { type ReadLines, readLines } from './score-lines.ts';
import { resultsCsv, resultsJsonl } from './score-results.ts';
import { ScoreRun } from './score-run.ts';
import { ScoreTable } from './score-table.tsx';

const EXAMPLE = `{"prompt": "Once upon a time there was a", "choices": [" king", " spreadsheet", " if"], "answer": 0}
{"prompt": "def add(a, b):\\n    return a", "choices": [" + b", " king"], "answer": 0}
`;

/** Larger files would block the page for seconds. */
const MAX_BYTES = 20 * 1024 * 1024;

/** What is scored. A file is not shown as text, because a field of megabytes is slow. */
interface Source {
  /** Null = the text was typed or pasted. */
  readonly file: string | null;
  readonly text: string;
}

/** Lines with a prompt and choices: each choice is scored by its logprob. */
export function ScoreView() {
  const session = useSession();
  const source = useSignal<Source>({ file: null, text: '' });
  const refused = useSignal('');
  const run = useSignal<ScoreRun | null>(null);
  const model = useSignal(session.model.peek());
  const read = useMemo(() => readLines(source.value.text), [source.value]);
  useEffect(() => () => run.peek()?.stop(), []);
  const change = (next: Source) => {
    run.peek()?.stop();
    run.value = null;
    refused.value = '';
    source.value = next;
  };
  const open = async (file: File | undefined) => {
    if (file === undefined) return;
    if (file.size <= MAX_BYTES) return change({ file: file.name, text: await file.text() });
    refused.value = `${file.name} has ${Math.ceil(file.size / 1024 / 1024)} MB; the limit is 20 MB. Split it.`;
  };
  const isLocal = model.value.endsWith(LOCAL_SUFFIX);
  const start = () => {
    run.value?.stop();
    run.value = new ScoreRun(model.value, read.lines);
    void run.value.start(session.connection.peek());
  };
  return (
    <section
      class="score stack"
      aria-label="Choices to score"
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        void open(event.dataTransfer?.files[0]);
      }}
    >
      <SourceField source={source.value} onChange={change} onFile={(file) => void open(file)} />
      <Fault text={refused.value} />
      <div class="row">
        <ModelSelect
          label="Model that scores"
          offered={offeredModels(session).filter((id) => !id.endsWith(LOCAL_SUFFIX))}
          model={model.value}
          onChange={(id) => (model.value = id)}
        />
        <Button
          class="primary"
          icon="play"
          text="Score"
          disabled={read.lines.length === 0 || isLocal || run.value?.isRunning === true}
          onClick={start}
        />
        <Button
          icon="stop"
          text="Stop"
          disabled={run.value?.isRunning !== true}
          onClick={() => run.value?.stop()}
        />
        {source.value.text === '' && (
          <Button text="Example" onClick={() => change({ file: null, text: EXAMPLE })} />
        )}
      </div>
      {isLocal && (
        <p class="error-text">A model in this browser cannot score choices. Choose another model.</p>
      )}
      <Faults read={read} />
      {run.value && <RunResults run={run.value} />}
    </section>
  );
}

interface SourceFieldProps {
  readonly source: Source;
  readonly onChange: (source: Source) => void;
  readonly onFile: (file: File | undefined) => void;
}

const SourceField = ({ source, onChange, onFile }: SourceFieldProps) => (
  <div class="stack">
    {source.file === null ? (
      <div class="field">
        <textarea
          rows={6}
          aria-label="Lines"
          spellcheck={false}
          placeholder={'{"prompt": "…", "choices": ["…", "…"], "answer": 0}, one per line; or drop a file'}
          value={source.text}
          onInput={(event) => onChange({ file: null, text: event.currentTarget.value })}
        />
      </div>
    ) : (
      <p class="row">
        <strong>{source.file}</strong>
        <Button class="plain" text="Remove" onClick={() => onChange({ file: null, text: '' })} />
      </p>
    )}
    <label class="row field">
      <span>File</span>
      <input
        type="file"
        accept=".jsonl,.ndjson,.json,application/jsonl"
        onChange={(event) => {
          onFile(event.currentTarget.files?.[0]);
          event.currentTarget.value = '';
        }}
      />
    </label>
  </div>
);

/** Faults that are listed; the number counts all. */
const MAX_FAULTS = 5;

function Faults({ read: { lines, faults } }: { readonly read: ReadLines }) {
  if (lines.length + faults.length === 0) return null;
  const count = lines.length.toLocaleString('en');
  return (
    <div role="status">
      <p class="quiet">
        {count} {lines.length === 1 ? 'line' : 'lines'} to score
        {faults.length > 0 && `, ${faults.length.toLocaleString('en')} left out`}.
      </p>
      <ul class="error-text">
        {faults.slice(0, MAX_FAULTS).map(({ number, fault }) => (
          <li key={number}>
            Line {number}: {fault}
          </li>
        ))}
      </ul>
    </div>
  );
}

function RunResults({ run }: { readonly run: ScoreRun }) {
  const { connection } = useSession();
  const results = run.results.value;
  const state = run.state.value;
  const proceed = () => void run.start(connection.peek());
  const done = results.filter(({ scores, fault }) => scores !== null || fault !== null).length;
  const failed = results.filter(({ fault }) => fault !== null).length;
  const isOpen = !run.isRunning && done - failed < results.length;
  const save = (name: string, type: string, content: string) => saveFile(name, new Blob([content], { type }));
  return (
    <div class="stack">
      <div class="row figures">
        <Bar label="Scored lines" value={done} max={results.length} />
        <span role="status">
          {done.toLocaleString('en')} of {results.length.toLocaleString('en')} lines
          {failed > 0 && `, ${failed.toLocaleString('en')} failed`}
          {state.name === 'stopped' && ', stopped'}
        </span>
        {state.name === 'waiting' && <Countdown until={state.until} />}
        {isOpen && state.name !== 'failed' && (
          <Button text={failed > 0 ? 'Retry what failed' : 'Continue'} onClick={proceed} />
        )}
      </div>
      {state.name === 'failed' && <FailureNotice failure={state.failure} onRetry={proceed} />}
      <ScoreTable results={results} />
      <div class="row">
        <Button
          text="Save JSONL"
          onClick={() => save('scores.jsonl', 'application/jsonl', resultsJsonl(run.model, results))}
        />
        <Button text="Save CSV" onClick={() => save('scores.csv', 'text/csv', resultsCsv(results))} />
      </div>
    </div>
  );
}

/** How long the server wants the page to wait. @param until Unix milliseconds */
function Countdown({ until }: { readonly until: number }) {
  return <span class="quiet">Waiting {useCountdown(until - Date.now(), until)} s, as the server asks</span>;
}
