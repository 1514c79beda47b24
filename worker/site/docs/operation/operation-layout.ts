import type { Collection, List, Props, System } from 'swagger-ui-dist/swagger-ui-es-bundle.js';
import { liveResponse, responseHeaders } from './response-components.ts';
import { schemaFields } from './schema-fields.ts';

/**
 * Components that replace Swagger UI's own: the description of the operation on the left, the request and its response on
 * the right. What the page shows elsewhere (summary, servers, authorization) is left out.
 */

type GetComponent = (name: string, connected?: boolean) => unknown;

interface OperationProps extends Props {
  readonly operation: Collection;
  readonly specPath: List;
  readonly response: Collection | null;
  readonly getComponent: GetComponent;
  readonly onExecute: () => void;
}

interface LayoutProps {
  readonly getComponent: GetComponent;
  readonly specSelectors: { readonly taggedOperations: () => Collection };
}

interface ShownOperation {
  readonly path: string;
  readonly method: string;
  readonly op: Collection;
  readonly executeInProgress: boolean;
  readonly displayRequestDuration: boolean;
}

/** Shows the only operation of the document. */
const layoutOf =
  ({ React: { createElement: h } }: System) =>
  ({ getComponent, specSelectors }: LayoutProps) => {
    const tagged = specSelectors.taggedOperations();
    const [tag] = Object.keys(tagged.toObject());
    if (tag === undefined) return null;
    const op = (tagged.getIn([tag, 'operations']) as Collection).first() as Collection;
    const path = op.get('path') as string;
    const method = op.get('method') as string;
    const specPath = tagged.keySeq().toList().clear().concat(['paths', path, method]);
    return h(getComponent('OperationContainer', true), { op, tag, path, method, specPath });
  };

const JSON_SCHEMA = ['content', 'application/json', 'schema'];

const isOptionalHeader = (parameter: Collection) =>
  parameter.get('in') === 'header' && parameter.get('required') !== true;

/** The two columns of an operation. */
function operationOf({ React: { createElement: h } }: System) {
  const section = (name: string, title: string, ...children: unknown[]) =>
    h('section', { className: name, 'aria-label': title }, h('h2', null, title), ...children);

  const description = ({ operation: shown, specPath, ...common }: OperationProps) => {
    const { op, path, method } = shown.toObject() as unknown as ShownOperation;
    const schema = op.getIn(['requestBody', ...JSON_SCHEMA]);
    const bodyPath = specPath.push('requestBody').concat(JSON_SCHEMA);
    const Model = common.getComponent('Model', true);
    const Responses = common.getComponent('responses', true);
    return h(
      'div',
      { className: 'operation-description' },
      schema ? section('fields', 'Body', h(Model, { ...common, schema, specPath: bodyPath })) : null,
      section(
        'responses',
        'Responses',
        h(Responses, {
          ...common,
          ...{ path, method, responses: op.get('responses'), tryItOutResponse: null },
          specPath: specPath.push('responses'),
        }),
      ),
    );
  };

  const request = ({ operation: shown, specPath, response, onExecute, ...common }: OperationProps) => {
    const { op, path, method, executeInProgress, displayRequestDuration } =
      shown.toObject() as unknown as ShownOperation;
    const { getComponent } = common;
    const all = op.get('parameters') as Collection;
    const headers = all.filter(isOptionalHeader);
    const others = all.filter((parameter) => !isOptionalHeader(parameter));
    const trying = { ...common, path, method, pathMethod: [path, method], onChangeKey: [path, method] };
    const form = (parameters: Collection, operation: Collection) =>
      h(getComponent('parameters', true), {
        ...{ ...trying, parameters, operation, tryItOutEnabled: true, allowTryItOut: true },
        specPath: specPath.push('parameters'),
      });
    const withoutBody = op.delete('requestBody');
    return h(
      'div',
      { className: 'operation-request' },
      section(
        'request',
        'Try it',
        others.size > 0 ? form(others, withoutBody) : null,
        op.get('requestBody') ? h('div', { className: 'request-body' }, form(all.clear(), op)) : null,
        headers.size > 0
          ? h('details', null, h('summary', null, 'Optional headers'), form(headers, withoutBody))
          : null,
        h(getComponent('execute'), { ...trying, operation: op, onExecute, disabled: executeInProgress }),
      ),
      response && response.size > 0
        ? section(
            'answer',
            'Response',
            h(getComponent('liveResponse'), { ...trying, response, displayRequestDuration }),
          )
        : null,
    );
  };

  return (props: OperationProps) => {
    const { op } = props.operation.toObject() as unknown as ShownOperation;
    if (op.size === 0) return null;
    return h('div', { className: 'operation-columns' }, description(props), request(props));
  };
}

const nothing = () => null;

/** Gives a field an accessible name: its own prop `description`, or the given name. */
const labelled =
  (name?: string) =>
  (Original: unknown, { React: { createElement: h } }: System) =>
  (props: { readonly description?: string }) =>
    h(
      'label',
      { className: 'labelled' },
      h('span', { className: 'visually-hidden' }, name ?? props.description),
      h(Original, props),
    );

/** A Swagger UI plugin. */
export const operationLayout = (system: System) => ({
  components: {
    OperationLayout: layoutOf(system),
    operation: operationOf(system),
    liveResponse: liveResponse(system),
    headers: responseHeaders(system),
    JSONSchema202012: schemaFields(system),
    TryItOutButton: nothing,
    OperationServers: nothing,
  },
  wrapComponents: {
    JsonSchemaForm: labelled(),
    ExamplesSelect: labelled('Example'),
    TextArea: labelled('Body'),
  },
});
