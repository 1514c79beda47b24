import { type Signal, useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { Parameters } from '../api/request-field.ts';
import { Button } from '../controls/button.tsx';
import { Dialog } from '../controls/dialog.tsx';
import { Segments } from '../controls/segments.tsx';
import type { Session } from '../store/session.ts';
import { checkConstraint, type Verdict } from './check-constraint.ts';
import { CodeEditor } from './code-editor.ts';
import {
  CONSTRAINT_EXAMPLES,
  CONSTRAINT_FIELDS,
  type ConstraintField,
  constraintValue,
  sourceOf,
} from './constraint-kinds.ts';

/** Time after the last change until the server checks the constraint. */
const CHECK_DELAY_MS = 300;

export interface ConstraintDialogProps {
  readonly parameters: Signal<Parameters>;
  readonly session: Session;
  readonly onClose: () => void;
}

/** Edits one constraint, checked by the server while it is written. */
export function ConstraintDialog({ parameters, session, onClose }: ConstraintDialogProps) {
  const isUsed = (field: ConstraintField) => sourceOf(field, parameters.peek()) !== null;
  const field = useSignal(CONSTRAINT_FIELDS.map(([name]) => name).find(isUsed) ?? 'json_schema');
  const sources = useSignal<Partial<Record<ConstraintField, string>>>({});
  const verdict = useSignal<Verdict | 'checking'>('checking');
  const current = field.value;
  const source =
    sources.value[current] ?? sourceOf(current, parameters.peek()) ?? CONSTRAINT_EXAMPLES[current];
  const isRefused = typeof verdict.value === 'object' && 'error' in verdict.value;
  const use = (value: unknown) => {
    const { json_schema: _, grammar: __, regex: ___, ...others } = parameters.peek();
    parameters.value = value === undefined ? others : { ...others, [current]: value };
    onClose();
  };
  return (
    <Dialog title="Constraint" class="wide" onClose={onClose}>
      <div class="stack">
        <Segments
          label="Kind of constraint"
          value={current}
          options={CONSTRAINT_FIELDS}
          onChange={(name) => (field.value = name)}
        />
        <CheckedEditor
          key={current}
          session={session}
          field={current}
          source={source}
          onChange={(text) => (sources.value = { ...sources.value, [current]: text })}
          onVerdict={(result) => (verdict.value = result)}
        />
        <VerdictLine verdict={verdict.value} />
        <div class="row">
          <Button
            class="primary"
            text="Use this constraint"
            disabled={isRefused || verdict.value === 'checking'}
            onClick={() => use(constraintValue(current, source))}
          />
          <Button text="Use no constraint" onClick={() => use(undefined)} />
        </div>
      </div>
    </Dialog>
  );
}

function VerdictLine({ verdict }: { readonly verdict: Verdict | 'checking' }) {
  const [text, isError] =
    verdict === 'checking'
      ? ['Checking', false]
      : verdict === 'valid'
        ? ['Valid: the model can only write what matches.', false]
        : 'error' in verdict
          ? [verdict.error, true]
          : [`Not checked: ${verdict.unchecked}`, false];
  return (
    <p class={`verdict ${isError ? 'error-text' : 'quiet'}`} role="status">
      {text}
    </p>
  );
}

interface CheckedEditorProps {
  readonly session: Session;
  readonly field: ConstraintField;
  readonly source: string;
  readonly onChange: (source: string) => void;
  readonly onVerdict: (verdict: Verdict | 'checking') => void;
}

function CheckedEditor({ session, field, source, onChange, onVerdict }: CheckedEditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const editor = useRef<CodeEditor | null>(null);
  useLayoutEffect(() => {
    editor.current = new CodeEditor(host.current!, source, field === 'json_schema', onChange);
    return () => editor.current?.destroy();
  }, []);
  useLayoutEffect(() => {
    const replaced = new AbortController();
    onVerdict('checking');
    const timer = setTimeout(async () => {
      const { connection, model } = session;
      const check = checkConstraint(connection.peek(), model.peek(), field, source, replaced.signal);
      const result = await check.catch(() => null);
      if (result === null) return;
      onVerdict(result);
      editor.current?.showError(typeof result === 'object' && 'error' in result ? result.error : null);
    }, CHECK_DELAY_MS);
    return () => {
      clearTimeout(timer);
      replaced.abort();
    };
  }, [source]);
  return <div ref={host} class="code-editor" />;
}
