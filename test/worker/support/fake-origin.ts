import type { IncomingMessage, ServerResponse } from 'node:http';
import type * as z from 'zod';
import { UsageAccounts } from '../../../origin/request/usage-accounts.ts';
import type { OriginActivity } from '../../../shared/activity.ts';
import { CAPABILITIES, IGNORED_KEYWORDS_HEADER } from '../../../shared/capabilities.ts';
import { ndjsonLine } from '../../../shared/framing.ts';
import {
  type GenerationEvent,
  type GenerationRequest,
  generationEvent,
  generationRequest,
  type Usage,
} from '../../../shared/generation.ts';
import type { OriginModel } from '../../../shared/origin-model.ts';
import { importSigningKey, SIGNATURE_HEADER, sha256Hex, verify } from '../../../shared/signing.ts';
import { detokenizeRequest, tokenizeRequest } from '../../../shared/tokenization.ts';
import type { usageAccount } from '../../../shared/usage.ts';
import { serve } from '../../support/local-server.ts';
import { defaultScript } from './scripts.ts';

/** The connection of one generation, for the script of a test. */
export interface Wire {
  /** Sends events as one write, each validated against the protocol's schema. */
  send(...events: readonly GenerationEvent[]): void;
  /** Sends raw bytes; resolves when they have been written. */
  raw(bytes: string | Uint8Array): Promise<void>;
  /** Answers with an error status before anything was sent. */
  refuse(status: number, body: unknown, headers?: Readonly<Record<string, string>>): void;
  /** Ends the response. */
  end(): void;
  /** Breaks the connection. */
  die(): void;
  /** Resolves when the connection has closed. */
  readonly closed: Promise<void>;
  readonly gone: () => boolean;
}

export type Script = (request: GenerationRequest, wire: Wire) => void | Promise<void>;

export interface FakeOrigin {
  readonly url: string;
  readonly secret: string;
  /** Answers /generate; tests replace it. */
  script: Script;
  models: OriginModel[];
  /** Header of its answers to /generate; null = absent. */
  ignoredKeywords: string | null;
  /** What it announces. */
  capabilities: readonly string[];
  /** The requests to /generate, oldest first. */
  readonly requests: GenerationRequest[];
  /** The requests to /tokenize and /detokenize, oldest first. */
  readonly tokenizerRequests: unknown[];
  /** The headers of `requests`. */
  readonly headers: IncomingMessage['headers'][];
  /** Usage accounts by name, which take precedence over the counted ones. */
  readonly accounts: Map<string, z.input<typeof usageAccount>>;
  /** All usage that it has counted, also before `reset`. */
  generated(): Pick<Usage, 'promptTokens' | 'completionTokens'>;
  /** Errors of scripts, and requests that violate the protocol; the tests take them. */
  readonly faults: unknown[];
  /** Restores the default script and models, and clears all records. */
  reset(): void;
  stop(): Promise<void>;
}

export const SECRET = 'shared secret of the tests, 32 bytes';

export const MODEL: OriginModel = {
  id: 'org/tiny',
  created: 1_700_000_000,
  contextLength: 2_048,
  vocabularySize: 4_096,
  infill: true,
  aliases: [],
  defaults: {},
  state: 'loaded',
};

async function textOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString('utf8');
}

type Observe = (events: readonly GenerationEvent[]) => void;

/** @param observe called with the events before they are sent */
function wireOf(response: ServerResponse, observe: Observe = () => {}): Wire {
  const closed = new Promise<void>((resolve) => response.once('close', resolve));
  const head = () => {
    if (!response.headersSent) response.writeHead(200, { 'content-type': 'application/x-ndjson' });
  };
  const raw = (bytes: string | Uint8Array) => {
    head();
    return new Promise<void>((resolve) => response.write(bytes, () => resolve()));
  };
  return {
    send: (...events) => {
      observe(events);
      void raw(events.map((event) => ndjsonLine(generationEvent.parse(event))).join(''));
    },
    raw,
    refuse: (status, body, headers = {}) => {
      response.writeHead(status, { 'content-type': 'application/json', ...headers });
      response.end(typeof body === 'string' ? body : JSON.stringify(body));
    },
    end: () => {
      head();
      response.end();
    },
    die: () => response.destroy(),
    closed,
    gone: () => response.destroyed && !response.writableFinished,
  };
}

/** Answers the tokenizer routes: one token per character. */
function tokenizerAnswer(path: string, body: string, requests: unknown[]): object {
  if (path === '/tokenize') {
    const sent = tokenizeRequest.parse(JSON.parse(body));
    requests.push(sent);
    const tokenStrings = Array.from(sent.prompt);
    const tokens = tokenStrings.map((character) => character.codePointAt(0));
    // Of a character of three bytes, the token has only a part.
    const bytesOf = (text: string) => Buffer.from(text).subarray(0, 2).toString('latin1');
    return {
      tokens,
      ...(sent.withStrings ? { tokenStrings } : {}),
      ...(sent.withBytes ? { tokenBytes: tokenStrings.map(bytesOf) } : {}),
    };
  }
  if (path === '/detokenize') {
    const sent = detokenizeRequest.parse(JSON.parse(body));
    requests.push(sent);
    if (sent.tokens.some((id) => id >= MODEL.vocabularySize)) {
      const message = 'A token id is outside the vocabulary.';
      return { error: { message, type: 'invalid_request_error', param: 'tokens', code: 'invalid_value' } };
    }
    return { text: sent.tokens.map((id) => String.fromCodePoint(id)).join('') };
  }
  return {
    model: MODEL.id,
    contextLength: MODEL.contextLength,
    vocabularySize: MODEL.vocabularySize,
    bosToken: null,
    eosToken: '<|end|>',
    padToken: null,
    unkToken: null,
    addBosToken: false,
    chatTemplate: null,
  };
}

/** What it says of its last hour. */
export const ACTIVITY: OriginActivity = {
  bounds: [0.1, 1],
  models: [
    {
      ...{ id: 'org/tiny', state: 'loaded', running: 1, waiting: 2, slots: 8 },
      minutes: [{ at: 1_795_000_020, tokens: 60, delays: [3, 1, 0] }],
    },
  ],
};

/** Starts a server with the origin's signed protocol that runs a script for each generation. */
export async function startFakeOrigin(): Promise<FakeOrigin> {
  const key = await importSigningKey(SECRET);
  const { url, stop } = await serve((request, response) => {
    void handle(request, response).catch((fault: unknown) => {
      origin.faults.push(fault);
      response.destroy();
    });
  });

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await textOf(request).catch(() => null);
    // The Worker has aborted the request.
    if (body === null) return;
    const path = request.url ?? '/';
    const signature = request.headers[SIGNATURE_HEADER];
    const parts = { method: request.method ?? 'GET', path };
    const wire = wireOf(response);
    const claims = await verify(key, typeof signature === 'string' ? signature : null, parts);
    if (claims?.bodyHash !== (await sha256Hex(body))) {
      const error = {
        message: 'Bad signature.',
        type: 'invalid_request_error',
        param: null,
        code: 'invalid_api_key',
      };
      return wire.refuse(401, { error });
    }
    if (path === '/models') {
      return wire.refuse(200, { models: origin.models, capabilities: origin.capabilities });
    }
    if (path === '/activity') return wire.refuse(200, ACTIVITY);
    if (path.startsWith('/usage')) {
      const { searchParams } = new URL(path, 'http://origin');
      const under = searchParams.get('under');
      if (under !== null) return wire.refuse(200, JSON.stringify(accounts.under(under)));
      const account = searchParams.get('account') ?? '';
      return wire.refuse(200, JSON.stringify(origin.accounts.get(account) ?? accounts.find(account)));
    }
    if (path !== '/generate') {
      const answer = tokenizerAnswer(path.split('?')[0] ?? '', body, origin.tokenizerRequests);
      return wire.refuse('error' in answer ? 400 : 200, answer);
    }
    const generation = generationRequest.parse(JSON.parse(body));
    origin.requests.push(generation);
    origin.headers.push(request.headers);
    if (origin.ignoredKeywords !== null) response.setHeader(IGNORED_KEYWORDS_HEADER, origin.ignoredKeywords);
    const account = accounts.open(generation.account ?? crypto.randomUUID(), generation.model, Date.now());
    response.once('close', () => account.end());
    await origin.script(generation, wireOf(response, account.observe));
  }

  const accounts = new UsageAccounts(Date.now);

  const origin: FakeOrigin = {
    url,
    secret: SECRET,
    script: defaultScript,
    models: [MODEL],
    ignoredKeywords: null,
    capabilities: CAPABILITIES,
    requests: [],
    tokenizerRequests: [],
    headers: [],
    accounts: new Map(),
    faults: [],
    generated() {
      const all = accounts.under('').map(({ usage }) => usage);
      const sum = (name: 'promptTokens' | 'completionTokens') =>
        all.reduce((total, { [name]: tokens }) => total + tokens, 0);
      return { promptTokens: sum('promptTokens'), completionTokens: sum('completionTokens') };
    },
    reset() {
      origin.script = defaultScript;
      origin.models = [MODEL];
      origin.ignoredKeywords = null;
      origin.capabilities = CAPABILITIES;
      origin.requests.length = 0;
      origin.tokenizerRequests.length = 0;
      origin.headers.length = 0;
      origin.accounts.clear();
    },
    stop,
  };
  return origin;
}
