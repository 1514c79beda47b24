import { noResponse } from '../../api/client.ts';
import type { Content, Parameter, Schema } from '../documents.ts';

/** The server's reply, as far as it has arrived; status null = no response. */
export interface Reply {
  readonly status: number | null;
  readonly milliseconds: number;
  readonly headers: string;
  readonly text: string;
}

type Body = Readonly<Record<string, unknown>>;

const SAMPLES: Readonly<Record<string, unknown>> = {
  string: '',
  integer: 1,
  number: 1,
  array: [],
  boolean: true,
};

/** Returns the documented bodies by name; if there are none, one with the required fields. */
export function examplesOf({
  examples,
  schema: { properties = {}, required = [] },
}: Content): [string, Body][] {
  const documented = Object.entries(examples ?? {});
  if (documented.length > 0) return documented.map(([name, { value }]) => [name, value as Body]);
  const sampleOf = ({ type, enum: values, default: fallback }: Schema) =>
    fallback ?? values?.[0] ?? SAMPLES[String(type)] ?? {};
  return [['required', Object.fromEntries(required.map((name) => [name, sampleOf(properties[name] ?? {})]))]];
}

export type Values = Readonly<Record<string, string>>;

/** Returns the address with the values of path and query. An absent value in the path keeps its name. */
export function addressOf(path: string, parameters: readonly Parameter[], values: Values): string {
  const given = (place: Parameter['in']) =>
    parameters.filter((parameter) => parameter.in === place && values[parameter.name]);
  const query = new URLSearchParams(given('query').map(({ name }) => [name, values[name]!]));
  const filled = given('path').reduce(
    (text, { name }) => text.replace(`{${name}}`, encodeURIComponent(values[name]!)),
    path,
  );
  return query.size > 0 ? `${filled}?${query}` : filled;
}

/** Sends a request and reports its reply, again whenever more of it has arrived. Never throws. */
export async function exchange(
  url: string,
  request: RequestInit,
  report: (reply: Reply) => void,
): Promise<void> {
  const start = performance.now();
  let reply: Reply = { status: null, milliseconds: 0, headers: '', text: '' };
  const arrived = (change: Partial<Reply>) => {
    reply = { ...reply, ...change, milliseconds: Math.round(performance.now() - start) };
    report(reply);
  };
  try {
    const response = await fetch(url, request);
    arrived({
      status: response.status,
      headers: [...response.headers].map((pair) => pair.join(': ')).join('\n'),
    });
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read())
      arrived({ text: reply.text + part.value });
    arrived({ text: pretty(reply.text) });
  } catch (thrown) {
    arrived({ text: `${reply.text}\n${noResponse(thrown).message}`.trim() });
  }
}

/** Returns JSON with indentation; other texts as they are. */
function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
