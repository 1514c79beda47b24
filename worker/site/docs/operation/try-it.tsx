import { useSignal } from '@preact/signals';
import { Button } from '../../controls/button.tsx';
import { Dialog } from '../../controls/dialog.tsx';
import { Segments } from '../../controls/segments.tsx';
import { Select } from '../../controls/select.tsx';
import { CodeBlock } from '../../copy/code-block.tsx';
import { languagesOf, requestCode } from '../../copy/request-code.ts';
import { useSession } from '../../store/session.ts';
import type { ListedOperation, Parameter } from '../documents.ts';
import { Description } from './description.tsx';
import { addressOf, examplesOf, exchange, type Reply, type Values } from './exchange.ts';

type TypedBody = ReturnType<typeof useBody>;

/** The body as typed, and as it was when it could last be read. */
function useBody(examples: ReturnType<typeof examplesOf>) {
  const [first] = examples;
  const text = useSignal(first ? JSON.stringify(first[1], null, 2) : '');
  const value = useSignal(first?.[1] ?? null);
  const fault = useSignal('');
  const write = (typed: string) => {
    text.value = typed;
    try {
      value.value = JSON.parse(typed);
      fault.value = '';
    } catch (thrown) {
      fault.value = `The body is not JSON: ${(thrown as Error).message}`;
    }
  };
  return { text, value, fault, write };
}

const isOptional = ({ in: place, required }: Parameter) => place === 'header' && required !== true;

/** The request as code, a form that sends it, and the reply. */
export function TryIt({ listed: { method, path, operation } }: { readonly listed: ListedOperation }) {
  const { key } = useSession();
  const { parameters = [], requestBody, responses } = operation;
  const content = requestBody?.content['application/json'];
  const examples = content ? examplesOf(content) : [];
  const values = useSignal<Values>({});
  const body = useBody(examples);
  const reply = useSignal<Reply | null>(null);
  const running = useSignal(false);
  const headers = Object.fromEntries(
    parameters
      .filter((parameter) => parameter.in === 'header' && values.value[parameter.name])
      .map(({ name }) => [name, values.value[name]!]),
  );
  const url = location.origin + addressOf(path, parameters, values.value);
  const send = async () => {
    running.value = true;
    const sent = new Headers(headers);
    if (key.value !== null) sent.set('authorization', `Bearer ${key.value}`);
    if (content) sent.set('content-type', 'application/json');
    const request = { method, headers: sent, ...(content && { body: body.text.value }) };
    await exchange(url, request, (arrived) => (reply.value = arrived));
    running.value = false;
  };
  const inputs = (shown: readonly Parameter[]) =>
    shown.map((parameter) => (
      <ParameterInput
        key={parameter.name}
        parameter={parameter}
        onInput={(value) => (values.value = { ...values.value, [parameter.name]: value })}
      />
    ));
  const [documented] = Object.values((responses['200'] ?? responses['201'])?.content ?? {});
  return (
    <div class="operation-request">
      <Samples request={{ method, url, key: null, headers, body: body.value.value }} />
      <section aria-label="Try it" class="framed stack">
        <h2>Try it</h2>
        {inputs(parameters.filter((each) => !isOptional(each)))}
        {content && <BodyForm body={body} examples={examples} />}
        <details>
          <summary>Optional headers</summary>
          <div class="stack">{inputs(parameters.filter(isOptional))}</div>
        </details>
        <SendButton
          request={`${method} ${new URL(url).pathname}`}
          warning={method === 'DELETE' ? operation.summary : null}
          disabled={running.value}
          onSend={() => void send()}
        />
      </section>
      {reply.value ? <ReplyView reply={reply.value} /> : <ExampleView example={documented?.example} />}
    </div>
  );
}

interface BodyProps {
  readonly body: TypedBody;
  readonly examples: ReturnType<typeof examplesOf>;
}

const BodyForm = ({ body: { text, fault, write }, examples }: BodyProps) => (
  <>
    {examples.length > 1 && (
      <Select
        label="Example"
        value={examples.find(([, value]) => JSON.stringify(value, null, 2) === text.value)?.[0] ?? ''}
        options={[['', 'Your own body'], ...examples.map(([name]) => [name, name] as const)]}
        onChange={(name) => write(JSON.stringify(Object.fromEntries(examples)[name] ?? {}, null, 2))}
      />
    )}
    <label class="field">
      <span class="visually-hidden">Body</span>
      <textarea
        rows={10}
        spellcheck={false}
        aria-invalid={fault.value !== ''}
        value={text.value}
        onInput={(event) => write(event.currentTarget.value)}
      />
    </label>
    {fault.value !== '' && <p class="error-text">{fault.value}</p>}
  </>
);

interface SendProps {
  readonly request: string;
  /** What cannot be undone, which the visitor is asked to confirm; null = nothing. */
  readonly warning: string | null;
  readonly disabled: boolean;
  readonly onSend: () => void;
}

function SendButton({ request, warning, disabled, onSend }: SendProps) {
  const asking = useSignal(false);
  const send = () => {
    asking.value = false;
    onSend();
  };
  return (
    <>
      <Button
        class="primary"
        text="Send"
        disabled={disabled}
        onClick={() => {
          if (warning !== null) asking.value = true;
          else send();
        }}
      />
      {asking.value && (
        <Dialog title="Send this request?" onClose={() => (asking.value = false)}>
          <div class="stack">
            <code>{request}</code>
            <p>{warning?.replace(/\.?$/, '.')} This cannot be undone.</p>
            <div class="row">
              <Button class="danger" text="Delete" onClick={send} />
              <Button text="Cancel" onClick={() => (asking.value = false)} />
            </div>
          </div>
        </Dialog>
      )}
    </>
  );
}

function Samples({ request }: { readonly request: Parameters<typeof requestCode>[1] }) {
  const language = useSignal('curl');
  const languages = languagesOf(request);
  const [form] = languages.find(([, name]) => name === language.value)!;
  return (
    <section aria-label="Code" class="framed stack">
      <Segments
        label="Language"
        value={language.value}
        options={languages.map(([, name]) => [name, name] as const)}
        onChange={(chosen) => (language.value = chosen)}
      />
      <CodeBlock code={requestCode(form, request)} />
    </section>
  );
}

interface InputProps {
  readonly parameter: Parameter;
  readonly onInput: (value: string) => void;
}

const ParameterInput = ({ parameter: { name, description, schema, required }, onInput }: InputProps) => (
  <div class="field">
    <p class="schema-head">
      <code>{name}</code> {required && <span class="schema-required">required</span>}
    </p>
    <input
      aria-label={name}
      autocomplete="off"
      spellcheck={false}
      placeholder={String(schema.enum?.join(', ') ?? schema.default ?? '')}
      onInput={(event) => onInput(event.currentTarget.value)}
    />
    <p class="quiet explanation">
      <Description text={description ?? ''} />
    </p>
  </div>
);

const ReplyView = ({ reply: { status, milliseconds, text, headers } }: { readonly reply: Reply }) => (
  <section aria-label="Response" class="framed">
    <h2>Response</h2>
    <p class="figures" role="status">
      {status === null ? 'No response' : `Status ${status}`}{' '}
      <span class="quiet">after {milliseconds} ms</span>
    </p>
    <CodeBlock code={text} />
    <details>
      <summary>Response headers</summary>
      <CodeBlock code={headers} />
    </details>
  </section>
);

function ExampleView({ example }: { readonly example: unknown }) {
  if (example === undefined) return null;
  return (
    <section aria-label="Example of a response" class="framed">
      <h2>Example of a response</h2>
      <CodeBlock code={JSON.stringify(example, null, 2)} />
    </section>
  );
}
