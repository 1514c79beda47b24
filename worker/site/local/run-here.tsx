import { type Signal, signal, useSignal } from '@preact/signals';
import { Bar } from '../controls/bar.tsx';
import { Button } from '../controls/button.tsx';
import { Dialog } from '../controls/dialog.tsx';
import { Fault } from '../controls/fault.tsx';
import { Select } from '../controls/select.tsx';
import { type Session, useSession } from '../store/session.ts';
import { droppedFiles, modelOf } from './dropped-files.ts';
import { keepPage } from './keep-page.ts';
import { type Model, type Opening, openLocal } from './local-server.ts';
import type { ChosenDevice } from './messages.ts';

/** As long as the page: the dialog may be closed meanwhile. */
const opening: Signal<Opening | null> = signal(null);
/** Whether the page opens without a connection. */
const isPageKept = signal(false);
let end = (): void => {};
/** What was opened last, for another try. */
let last: Model = { type: 'open-built-in', device: 'auto' };
const chosenDevice: Signal<ChosenDevice> = signal('auto');

const DEVICES = [
  ['auto', 'Graphics card if it is faster'],
  ['wasm', 'Processor: WebAssembly'],
  ['webgpu', 'Graphics card: WebGPU'],
] as const;

const MEGABYTE = 1e6;
const inMegabytes = (bytes: number): string => `${(bytes / MEGABYTE).toFixed(1)} MB`;

function openModel(model: Model, { local, model: chosen }: Session): void {
  end();
  last = model;
  local.value = null;
  opening.value = { state: 'loading', loaded: 0, total: 0 };
  end = openLocal(model, (next) => {
    opening.value = next;
    local.value = next.state === 'open' ? next.server : null;
    if (next.state !== 'open') return;
    chosen.value = next.server.id;
    void keepPage().then((isKept) => (isPageKept.value = isKept));
  });
}

function cancel({ local }: Session): void {
  end();
  local.value = null;
  opening.value = null;
}

/** Opens a model in this browser: the built-in one, or one of the visitor. */
export function RunHereDialog({ onClose }: { readonly onClose: () => void }) {
  const session = useSession();
  const refusal = useSignal<string | null>(null);
  const openFiles = async (files: readonly File[] | Promise<readonly File[]>) => {
    try {
      refusal.value = null;
      openModel({ type: 'open', device: chosenDevice.value, ...modelOf(await files) }, session);
    } catch (thrown) {
      refusal.value = thrown instanceof Error ? thrown.message : String(thrown);
    }
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    if (event.dataTransfer) void openFiles(droppedFiles(event.dataTransfer));
  };
  return (
    <Dialog title="Run a model in this browser" class="run-here-dialog" onClose={onClose}>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the choice of files does the same by keyboard. */}
      <div class="stack" onDragOver={(event) => event.preventDefault()} onDrop={drop}>
        <p class="quiet">
          Texts and completions do not leave this device. The built-in model and ONNX Runtime, 28 MB together,
          are downloaded once; with a graphics card, 17 MB more. Once the model is open, this page needs no
          connection.
        </p>
        <State
          opening={opening.value}
          open={(model) => openModel(model, session)}
          cancel={() => cancel(session)}
        />
        <div class="stack">
          <span>Device</span>
          <Select
            label="Device"
            value={chosenDevice.value}
            options={DEVICES}
            onChange={(device) => (chosenDevice.value = device)}
          />
        </div>
        <label class="field stack">
          <span>
            A model of your own, as continuo model build writes it: choose its directory, or drop it here
          </span>
          <input
            type="file"
            multiple
            ref={(input) => input?.setAttribute('webkitdirectory', '')}
            onChange={({ currentTarget }) => void openFiles([...(currentTarget.files ?? [])])}
          />
        </label>
        <Fault text={refusal.value} />
      </div>
    </Dialog>
  );
}

/** Where bits may differ. */
const ROUNDING = {
  wasm: 'A server sums in another order.',
  webgpu:
    'Graphics cards, WebAssembly and servers round otherwise; at the start, 8 greedy tokens were those of WebAssembly.',
} as const;

interface StateProps {
  readonly opening: Opening | null;
  readonly open: (model: Model) => void;
  readonly cancel: () => void;
}

function State({ opening, open, cancel }: StateProps) {
  if (opening === null) {
    const openBuiltIn = () => open({ type: 'open-built-in', device: chosenDevice.value });
    return <Button class="primary" text="Run continuo-mini here" onClick={openBuiltIn} />;
  }
  if (opening.state === 'failed') {
    return (
      <div class="stack" role="alert">
        <p class="error-text">{opening.message}</p>
        <Button class="primary" text="Try again" onClick={() => open(last)} />
      </div>
    );
  }
  if (opening.state === 'loading') {
    const { loaded, total } = opening;
    const isLoaded = total > 0 && loaded >= total;
    return (
      <div class="stack" role="status">
        {isLoaded ? (
          <p>Opening the model</p>
        ) : (
          <p>
            {inMegabytes(loaded)}
            {total > 0 && ` of ${inMegabytes(total)}`}
          </p>
        )}
        <Bar label="Download" value={loaded} max={total || 1} />
        <Button text="Cancel" onClick={cancel} />
      </div>
    );
  }
  const { name, context, kept, device, card } = opening;
  const place =
    device.kind === 'webgpu'
      ? `the graphics card of this device: WebGPU${card ? `, ${card}` : ''}`
      : 'the processor of this device: WebAssembly, one thread';
  return (
    <div class="stack" role="status">
      <p>
        <strong>{name}</strong> runs on {place}, {context} tokens of context. {device.reason}
      </p>
      <p class="quiet">
        The same fields and seeds give the same text here at each run. {ROUNDING[device.kind]} So a token
        whose probability is close to another one's may differ.
      </p>
      {kept && isPageKept.value && (
        <p class="quiet">The page and the model are kept. Both open again without a connection.</p>
      )}
      {kept === false && (
        <p class="quiet">
          This browser's storage is full or blocked. The next visit downloads the files again.
        </p>
      )}
      <Button text="Stop running it" onClick={cancel} />
    </div>
  );
}
