import { useSignal } from '@preact/signals';
import { Button } from '../../controls/button.tsx';
import { Dialog } from '../../controls/dialog.tsx';
import { Segments } from '../../controls/segments.tsx';
import { Select } from '../../controls/select.tsx';
import { CodeBlock } from '../../copy/code-block.tsx';
import { languagesOf, requestCode } from '../../copy/request-code.ts';
import { useSession } from '../../store/session.ts';
import type { ListedOperation, Parameter } from '../documents.ts';
import { addressOf, examplesOf, exchange, type Reply, type Values } from './exchange.ts';

/** The request as code, a form that sends it, and the reply. */
export function TryIt({ listed: { method, path, operation } }: { readonly listed: ListedOperation }) {
  const { key } = useSession();
  const { parameters = [], requestBody, responses } = operation;
  const content = requestBody?.content['application/json'];
  const examples = content ? examplesOf(content) : [];
  const values = useSignal<Values>({});
  const written = useSignal(examples[0] ? JSON.stringify(examples[0][1], null, 2) : '');
  /** The last body that could be read. */
  const body = useSignal(examples[0]?.[1] ?? null);
  const fault = useSignal('');
  const reply = useSignal<Reply | null>(null);
  const running = useSignal(false);
  /** Whether the visitor is asked to confirm the request. */
  const asking = useSignal(false);
  const write = (text: string) => {
    written.value = text;
    try {
      body.value = JSON.parse(text);
      fault.value = '';
    } catch (thrown) {
      fault.value = `The body is not JSON: ${(thrown as Error).message}`;
    }
  };
  const isOptional = (parameter: Parameter) => parameter.in === 'header' && parameter.required !== true;
  const headers = Object.fromEntries(
    parameters
      .filter((parameter) => parameter.in === 'header' && values.value[parameter.name])
      .map(({ name }) => [name, values.value[name]!]),
  );
  const url = location.origin + addressOf(path, parameters, values.value);
  const send = async () => {
    asking.value = false;
    running.value = true;
    const sent = new Headers(headers);
    if (key.value !== null) sent.set('authorization', `Bearer ${key.value}`);
    if (content) sent.set('content-type', 'application/json');
    const request = { method, headers: sent, ...(content && { body: written.value }) };
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
      <Samples request={{ method, url, key: null, headers, body: body.value }} />
      <section aria-label="Try it" class="stack">
        <h2>Try it</h2>
        {inputs(parameters.filter((each) => !isOptional(each)))}
        {examples.length > 1 && (
          <Select
            label="Example"
            value={examples.find(([, value]) => JSON.stringify(value, null, 2) === written.value)?.[0] ?? ''}
            options={[['', 'Your own body'], ...examples.map(([name]) => [name, name] as const)]}
            onChange={(name) => write(JSON.stringify(Object.fromEntries(examples)[name] ?? {}, null, 2))}
          />
        )}
        {content && (
          <label class="field">
            <span class="visually-hidden">Body</span>
            <textarea
              rows={10}
              spellcheck={false}
              aria-invalid={fault.value !== ''}
              value={written.value}
              onInput={(event) => write(event.currentTarget.value)}
            />
          </label>
        )}
        {fault.value !== '' && <p class="error-text">{fault.value}</p>}
        <details>
          <summary>Optional headers</summary>
          <div class="stack">{inputs(parameters.filter(isOptional))}</div>
        </details>
        <Button
          class="primary"
          text="Send"
          disabled={running.value}
          onClick={() => {
            if (method === 'DELETE') asking.value = true;
            else void send();
          }}
        />
        {asking.value && (
          <Dialog title="Send this request?" onClose={() => (asking.value = false)}>
            <div class="stack">
              <code>
                {method} {new URL(url).pathname}
              </code>
              <p>{operation.summary.replace(/\.?$/, '.')} This cannot be undone.</p>
              <div class="row">
                <Button class="danger" text="Delete" onClick={() => void send()} />
                <Button text="Cancel" onClick={() => (asking.value = false)} />
              </div>
            </div>
          </Dialog>
        )}
      </section>
      {reply.value ? (
        <ReplyView reply={reply.value} />
      ) : (
        documented?.example !== undefined && (
          <section aria-label="Example of a response">
            <h2>Example of a response</h2>
            <CodeBlock code={JSON.stringify(documented.example, null, 2)} />
          </section>
        )
      )}
    </div>
  );
}

function Samples({ request }: { readonly request: Parameters<typeof requestCode>[1] }) {
  const language = useSignal('curl');
  const languages = languagesOf(request);
  const [form] = languages.find(([, name]) => name === language.value)!;
  return (
    <section aria-label="Code" class="stack">
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
    <p class="quiet explanation">{description}</p>
  </div>
);

const ReplyView = ({ reply: { status, milliseconds, text, headers } }: { readonly reply: Reply }) => (
  <section aria-label="Response">
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
