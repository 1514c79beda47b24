import type { Collection, System } from 'swagger-ui-dist/swagger-ui-es-bundle.js';

interface LiveResponseProps {
  readonly response: Collection;
  readonly path: string;
  readonly method: string;
  readonly getComponent: (name: string, connected?: boolean) => unknown;
  readonly getConfigs: unknown;
  readonly specSelectors: { readonly requestFor: (path: string, method: string) => Collection | undefined };
}

/** What curl shows instead of the visitor's key. */
const KEY_PLACE = 'Bearer YOUR_KEY';

/** The server's answer: status, body, headers, and the request as a curl command. */
export function liveResponse({ React: { createElement: h } }: System) {
  const details = (title: string, content: unknown) => h('details', null, h('summary', null, title), content);
  return ({ response, path, method, getComponent, getConfigs, specSelectors }: LiveResponseProps) => {
    const { status, duration, text, error, message } = response.toObject() as {
      readonly [name: string]: string | number | undefined;
    };
    const headers = Object.entries((response.get('headers') as Collection | undefined)?.toJS() ?? {});
    const type = headers.find(([name]) => name === 'content-type')?.[1];
    const request = specSelectors.requestFor(path, method);
    return h(
      'div',
      null,
      h(
        'p',
        { className: 'answer-status', role: 'status' },
        h('strong', null, error && !status ? 'No response' : `Status ${status}`),
        ` after ${duration} ms`,
      ),
      error && !text ? h('p', { className: 'error-text' }, String(message)) : null,
      text
        ? h(getComponent('responseBody'), {
            ...{ content: text, contentType: type, url: request?.get('url'), headers: {} },
            ...{ getConfigs, getComponent },
          })
        : null,
      details(
        'Response headers',
        h('pre', { tabIndex: 0 }, headers.map(([name, value]) => `${name}: ${value}`).join('\n')),
      ),
      request
        ? details(
            'curl',
            h(getComponent('curl', true), {
              request: request.setIn(['headers', 'authorization'], KEY_PLACE),
            }),
          )
        : null,
    );
  };
}

/** The documented headers of a response. */
export const responseHeaders =
  ({ React: { createElement: h } }: System) =>
  ({ headers }: { readonly headers: Collection }) => {
    const described = Object.entries(headers.toJS() as Record<string, { readonly description: string }>);
    if (described.length === 0) return null;
    return h(
      'details',
      { className: 'response-headers' },
      h('summary', null, 'Headers'),
      h(
        'dl',
        null,
        ...described.flatMap(([name, { description }]) => [
          h('dt', { key: name }, h('code', null, name)),
          h('dd', { key: `${name}-` }, description.replaceAll('`', '')),
        ]),
      ),
    );
  };
