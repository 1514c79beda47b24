import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { authenticator, importSecrets } from '../../../origin/http/authentication.ts';
import { HEARTBEAT_MS, READER_LIMITS, type ReaderLimits } from '../../../origin/http/event-stream.ts';
import { createMetrics } from '../../../origin/http/metrics.ts';
import { createMetricsServer, createOriginServer } from '../../../origin/http/server.ts';
import type { TraceExport } from '../../../origin/http/trace-export.ts';
import type { ImageInput } from '../../../origin/images/prompt-images.ts';
import { createLog } from '../../../origin/process/log.ts';
import type { HostedModel } from '../../../origin/request/hosted-model.ts';
import { UsageAccounts } from '../../../origin/request/usage-accounts.ts';
import { Fleet } from '../../../origin/serving/fleet.ts';
import { NO_MEMORY_LIMITS } from '../../../origin/serving/memory-budget.ts';
import { Service } from '../../../origin/serving/service.ts';
import { importSigningKey, SECRET_ID_HEADER, SIGNATURE_HEADER, sign } from '../../../shared/signing.ts';
import { forEachTest } from '../../support/for-tests.ts';
import { inspected, servedModel } from '../request/served-models.ts';
import { byteLevelDirectory } from '../tokenizer/fixtures.ts';
import { ScriptedEngine } from './scripted-engine.ts';

export const SECRET = 'a secret of the tests, 32 bytes long';

export interface Call {
  readonly headers?: Readonly<Record<string, string>>;
  readonly method?: string;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
  /** Replaces the valid signature. */
  readonly signature?: string | null;
  /** Names the secret of the signature. */
  readonly secretId?: string;
}

export interface StartOptions {
  readonly traces?: TraceExport | null;
  readonly readerLimits?: ReaderLimits;
  readonly heartbeatMs?: number;
  readonly timeouts?: Parameters<typeof createOriginServer>[1];
  /** Gives the model an image encoder; every `<|endoftext|>` takes the place of an image. */
  readonly readImage?: ImageInput['read'];
  /** Unix milliseconds. */
  readonly now?: () => number;
  /** Accepted secrets; the first one signs the calls of the tests. */
  readonly secrets?: readonly string[];
}

/** The origin's HTTP server on a real port, with a scripted engine and a tiny tokenizer. */
export class RunningOrigin {
  readonly engine = new ScriptedEngine();
  readonly model: HostedModel;
  readonly logLines: string[] = [];
  readonly #log = createLog('trace', { write: (line: string) => void this.logLines.push(line) });
  readonly fleet = new Fleet({
    load: async () => ({ model: this.model, engine: this.engine }),
    now: () => performance.now(),
    log: this.#log,
  });
  readonly service = new Service(this.fleet);
  readonly metrics = createMetrics({ health: () => this.service.health, engines: () => this.fleet.engines });
  #url = '';
  #metricsUrl = '';
  #close: () => void = () => undefined;

  private constructor(readImage: ImageInput['read'] | undefined) {
    const blind = servedModel(byteLevelDirectory());
    const token = '<|endoftext|>';
    const tokenId = blind.tokenizer.addedTokens.get(token)!;
    this.model = readImage ? { ...blind, images: { tokenId, token, positions: 2, read: readImage } } : blind;
  }

  static async start({
    readerLimits = READER_LIMITS,
    heartbeatMs = HEARTBEAT_MS,
    timeouts,
    readImage,
    now = Date.now,
    secrets = [SECRET],
    traces = null,
  }: StartOptions = {}): Promise<RunningOrigin> {
    const origin = new RunningOrigin(readImage);
    const context = {
      service: origin.service,
      metrics: origin.metrics,
      traces,
      log: origin.#log,
      authenticate: authenticator(await importSecrets(secrets), now, origin.#log),
      readerLimits,
      heartbeatMs,
      usageAccounts: new UsageAccounts(now),
      now,
      newId: randomUUID,
      drawSeed: () => 1,
    };
    const server = timeouts ? createOriginServer(context, timeouts) : createOriginServer(context);
    const metricsServer = createMetricsServer(context);
    for (const one of [server, metricsServer]) {
      one.listen(0, '127.0.0.1');
      await once(one, 'listening');
    }
    origin.#url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    origin.#metricsUrl = `http://127.0.0.1:${(metricsServer.address() as AddressInfo).port}`;
    origin.#close = () => {
      for (const one of [server, metricsServer]) {
        one.closeAllConnections();
        one.close();
      }
    };
    return origin;
  }

  get url(): string {
    return this.#url;
  }

  /** Resolves when the model is loaded. */
  async ready(): Promise<this> {
    this.fleet.configure({ models: [inspected(this.model)], faulty: [] }, NO_MEMORY_LIMITS);
    await this.fleet.whenStarted();
    return this;
  }

  stop(): void {
    this.#close();
  }

  async signature(
    method: string,
    path: string,
    body: string,
    timestamp = Date.now(),
    nonce = randomUUID(),
    secret = SECRET,
  ) {
    return sign(await importSigningKey(secret), { method, path, body }, { timestamp, nonce });
  }

  async call(
    path: string,
    { method, body, signal, signature, secretId, headers }: Call = {},
  ): Promise<Response> {
    const text = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body);
    const verb = method ?? (body === undefined ? 'GET' : 'POST');
    const header = signature === undefined ? await this.signature(verb, path, text) : signature;
    return fetch(this.#url + path, {
      method: verb,
      headers: {
        ...headers,
        ...(header === null ? {} : { [SIGNATURE_HEADER]: header }),
        ...(secretId === undefined ? {} : { [SECRET_ID_HEADER]: secretId }),
      },
      ...(verb === 'GET' ? {} : { body: text }),
      ...(signal ? { signal } : {}),
    });
  }

  /** Calls the port of metrics and detailed health. */
  operator(path: string): Promise<Response> {
    return fetch(this.#metricsUrl + path);
  }

  async error(path: string, call?: Call) {
    const response = await this.call(path, call);
    const { error } = (await response.json()) as { error: Record<string, unknown> };
    return { status: response.status, headers: response.headers, ...error };
  }
}

/** Starts one for each test of a file, with its model loaded. */
export const originForEachTest = (): RunningOrigin =>
  forEachTest(async () => (await RunningOrigin.start()).ready());
