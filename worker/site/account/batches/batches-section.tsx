import { useSignal } from '@preact/signals';
import { Bar } from '../../controls/bar.tsx';
import { Button } from '../../controls/button.tsx';
import type { Column } from '../../controls/data-table.tsx';
import { Dialog } from '../../controls/dialog.tsx';
import { saveFile } from '../../controls/save-file.ts';
import { useAccount } from '../account.ts';
import type { BatchObject } from '../api-objects.ts';
import { ageColumn } from '../columns.tsx';
import { ActionButton, Form } from '../form/form.tsx';
import { count } from '../formats.ts';
import { PagedTable } from '../paged-table.tsx';
import type { ServerClock } from '../server-clock.ts';
import { FILE_NAME, NewBatch } from './new-batch.tsx';

/** Batches that run are read again after this time. */
const READ_MS = 3_000;

const ENDED: readonly string[] = ['failed', 'completed', 'expired', 'cancelled'];
const isRunning = ({ status }: BatchObject): boolean => !ENDED.includes(status);
/** Whether the server can still cancel it. */
const canCancel = ({ status }: BatchObject): boolean => ['validating', 'in_progress'].includes(status);

interface BatchPage {
  readonly data: readonly BatchObject[];
  readonly has_more: boolean;
}

/** The batches of the account: a new one, their progress, and their results. */
export function BatchesSection() {
  const { clock } = useAccount();
  const version = useSignal(0);
  const cancelled = useSignal<BatchObject | null>(null);
  return (
    <>
      <h2>Batches</h2>
      <NewBatch onCreated={() => (version.value += 1)} />
      <PagedTable<BatchObject, BatchPage>
        caption="Batches"
        columns={columnsOf(clock, (batch) => (cancelled.value = batch))}
        path="/v1/batches"
        nextOf={({ data, has_more }) => (has_more ? data.at(-1)!.id : null)}
        refreshMs={({ data }) => (data.some(isRunning) ? READ_MS : null)}
        version={version.value}
        empty={['No batches', 'A batch runs the requests of a file when there is room.']}
      />
      {cancelled.value && (
        <CancelBatch
          of={cancelled.value}
          onDone={(changed) => {
            cancelled.value = null;
            if (changed) version.value += 1;
          }}
        />
      )}
    </>
  );
}

const nameOf = ({ metadata, id }: BatchObject): string => metadata?.[FILE_NAME] ?? id;

const columnsOf = (
  clock: ServerClock,
  onCancel: (batch: BatchObject) => void,
): readonly Column<BatchObject>[] => [
  {
    title: 'Batch',
    of: nameOf,
    show: ({ metadata, id }) => (
      <span class="batch-name">
        <bdi>{metadata?.[FILE_NAME]}</bdi>
        <code>{id}</code>
      </span>
    ),
  },
  { title: 'State', of: ({ status }) => status, show: (batch) => <BatchState of={batch} /> },
  ageColumn(clock),
  {
    title: 'Files',
    of: ({ request_counts }) => request_counts.completed,
    show: (batch) => <BatchActions of={batch} onCancel={onCancel} />,
  },
];

function BatchState({ of: batch }: { readonly of: BatchObject }) {
  const { status, errors, request_counts: counts } = batch;
  const done = counts.completed + counts.failed;
  const fault = errors?.data[0];
  return (
    <div class="batch-name">
      <span>
        {status.replace('_', ' ')}{' '}
        {counts.total > 0 && (
          <span class="quiet">
            {count(done)} of {count(counts.total)} lines
            {counts.failed > 0 && `, ${count(counts.failed)} failed`}
          </span>
        )}
      </span>
      {isRunning(batch) && counts.total > 0 && (
        <Bar label="Lines that are done" value={done} max={counts.total} />
      )}
      {fault && (
        <span class="error-text">
          {fault.line !== null && `Line ${fault.line}: `}
          {fault.message}
        </span>
      )}
    </div>
  );
}

interface BatchActionsProps {
  readonly of: BatchObject;
  readonly onCancel: (batch: BatchObject) => void;
}

function BatchActions({ of: batch, onCancel }: BatchActionsProps) {
  const { output_file_id: output, error_file_id: errors } = batch;
  return (
    <div class="row">
      {output !== null && <SaveFile id={output} text="Results" name={`${batch.id}-results.jsonl`} />}
      {errors !== null && <SaveFile id={errors} text="Failed lines" name={`${batch.id}-errors.jsonl`} />}
      {canCancel(batch) && <Button text="Cancel…" onClick={() => onCancel(batch)} />}
    </div>
  );
}

interface SaveFileProps {
  readonly id: string;
  readonly text: string;
  readonly name: string;
}

function SaveFile({ id, text, name }: SaveFileProps) {
  const account = useAccount();
  const save = async () => saveFile(name, await (await account.ask(`/v1/files/${id}/content`)).blob());
  return <ActionButton text={text} busyText="Loading…" onSend={save} />;
}

interface CancelBatchProps {
  readonly of: BatchObject;
  readonly onDone: (changed: boolean) => void;
}

function CancelBatch({ of: batch, onDone }: CancelBatchProps) {
  const account = useAccount();
  const cancel = async () => {
    await account.ask(`/v1/batches/${batch.id}/cancel`, { method: 'POST' });
    onDone(true);
  };
  return (
    <Dialog title="Cancel a batch" onClose={() => onDone(false)}>
      <Form action="Cancel the batch" isDanger partsOf={() => []} onSend={cancel}>
        <p>
          <bdi>{nameOf(batch)}</bdi>: lines that run are finished, and all results are kept. The other lines
          do not run.
        </p>
      </Form>
    </Dialog>
  );
}
