import { useSignal } from '@preact/signals';
import { Button } from '../../controls/button.tsx';
import { Dialog } from '../../controls/dialog.tsx';
import { saveFile } from '../../controls/save-file.ts';
import { askJson, useAccount } from '../account.ts';
import { ageColumn } from '../columns.tsx';
import { type Column, DataTable } from '../data-table.tsx';
import { ActionButton } from '../form/action-button.tsx';
import { count } from '../formats.ts';
import { useResource } from '../resource.ts';
import { Empty, Loaded } from '../states.tsx';
import { type BatchObject, type BatchPage, canCancel, FILE_NAME, isRunning } from './batch-object.ts';
import { NewBatch } from './new-batch.tsx';

/** Batches that run are read again after this time. */
const READ_MS = 3_000;
const PAGE = 100;

/** The batches of the account: a new one, their progress, and their results. */
export function BatchesSection() {
  const account = useAccount();
  const pages = useSignal(1);
  const cancelled = useSignal<BatchObject | null>(null);
  const batches = useResource(
    async (signal) => {
      const data: BatchObject[] = [];
      let hasMore = true;
      for (let at = 0; at < pages.peek() && hasMore; at += 1) {
        const after = data.at(-1)?.id;
        const query = new URLSearchParams({ limit: String(PAGE), ...(after !== undefined && { after }) });
        const page = await askJson<BatchPage>(account, `/v1/batches?${query}`, { signal });
        data.push(...page.data);
        hasMore = page.has_more;
      }
      return { data, hasMore };
    },
    String(pages.value),
    ({ data }) => (data.some(isRunning) ? READ_MS : null),
  );
  return (
    <>
      <h2>Batches</h2>
      <NewBatch onCreated={batches.reload} />
      <Loaded of={batches}>
        {({ data, hasMore }) =>
          data.length === 0 ? (
            <Empty title="No batches">A batch runs the requests of a file when there is room.</Empty>
          ) : (
            <>
              <BatchTable batches={data} onCancel={(batch) => (cancelled.value = batch)} />
              {hasMore && <Button text="Show older ones" onClick={() => (pages.value += 1)} />}
            </>
          )
        }
      </Loaded>
      {cancelled.value && (
        <CancelBatch
          of={cancelled.value}
          onDone={(changed) => {
            cancelled.value = null;
            if (changed) batches.reload();
          }}
        />
      )}
    </>
  );
}

interface BatchTableProps {
  readonly batches: readonly BatchObject[];
  readonly onCancel: (batch: BatchObject) => void;
}

function BatchTable({ batches, onCancel }: BatchTableProps) {
  const now = useAccount().clock.now() / 1000;
  const columns: readonly Column<BatchObject>[] = [
    {
      title: 'Batch',
      of: ({ metadata, id }) => metadata?.[FILE_NAME] ?? id,
      show: ({ metadata, id }) => (
        <span class="batch-name">
          <bdi>{metadata?.[FILE_NAME]}</bdi>
          <code>{id}</code>
        </span>
      ),
    },
    { title: 'State', of: ({ status }) => status, show: (batch) => <BatchState of={batch} /> },
    ageColumn(now),
    {
      title: 'Files',
      of: ({ request_counts }) => request_counts.completed,
      show: (batch) => <BatchActions of={batch} onCancel={onCancel} />,
    },
  ];
  return <DataTable caption="Batches" columns={columns} rows={batches} idOf={({ id }) => id} />;
}

function BatchState({ of: batch }: { readonly of: BatchObject }) {
  const { status, errors, request_counts: counts } = batch;
  const done = counts.completed + counts.failed;
  const fault = errors?.data[0];
  return (
    <div class="batch-state">
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
        <progress max={counts.total} value={done} aria-label="Lines that are done" />
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
      <div class="stack">
        <p>
          <bdi>{batch.metadata?.[FILE_NAME] ?? batch.id}</bdi>: lines that run are finished, and all results
          are kept. The other lines do not run.
        </p>
        <div class="row">
          <Button text="Let it run" onClick={() => onDone(false)} />
          <ActionButton class="danger" text="Cancel the batch" onSend={cancel} />
        </div>
      </div>
    </Dialog>
  );
}
