import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { GenerationRequest } from '../../../shared/generation.ts';
import type { OriginModel } from '../../../shared/origin-model.ts';
import { importSigningKey, SIGNATURE_HEADER, sign } from '../../../shared/signing.ts';
import { bareEnvironment } from '../../support/child-processes.ts';
import { request } from '../../support/generation-request.ts';

export const SECRET = 'a secret of the tests, 32 bytes long';

type Line = Readonly<Record<string, unknown>>;

/** The origin in a separate process. */
export class OriginProcess {
  readonly child: ChildProcess;
  /** Resolves with the exit code. */
  readonly exit: Promise<number | null>;
  stdout = '';
  stderr = '';

  /** @param cwd checkout that it runs from */
  constructor(environment: Readonly<Record<string, string>> = {}, cwd = process.cwd()) {
    const env = {
      ...bareEnvironment(),
      CONTINUO_ORIGIN_SECRET: SECRET,
      CONTINUO_ORIGIN_PORT: '0',
      CONTINUO_METRICS_PORT: '0',
      ...environment,
    };
    const stdio: StdioOptions = ['ignore', 'pipe', 'pipe'];
    this.child = spawn(process.execPath, ['origin/main.ts'], { cwd, env, stdio });
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text;
    });
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
    this.exit = once(this.child, 'close').then(([code]) => code as number | null);
  }

  /** The log lines so far. */
  get lines(): Line[] {
    const whole = this.stdout.split('\n').slice(0, -1);
    return whole.map((text) => JSON.parse(text) as Line);
  }

  /** Resolves with the first log line at or after index `from` that has this message and these fields. */
  async line(message: string | RegExp, fields: Line = {}, from = 0): Promise<Line> {
    const fits = (line: Line) =>
      (typeof message === 'string' ? line.msg === message : message.test(String(line.msg))) &&
      Object.entries(fields).every(([name, value]) => line[name] === value);
    for (;;) {
      const found = this.lines.slice(from).find(fits);
      if (found) return found;
      await Promise.race([once(this.child.stdout!, 'data'), this.exit]);
      const { exitCode, signalCode } = this.child;
      if (exitCode !== null || signalCode !== null) throw new Error(`ended early: ${this.stderr}`);
    }
  }

  /** Sends a signed request. */
  async call(path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
    const { port } = await this.line('listening');
    const method = body === undefined ? 'GET' : 'POST';
    const text = body === undefined ? '' : JSON.stringify(body);
    const key = await importSigningKey(SECRET);
    const claims = { timestamp: Date.now(), nonce: crypto.randomUUID() };
    return fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: { [SIGNATURE_HEADER]: await sign(key, { method, path, body: text }, claims) },
      ...(body === undefined ? {} : { body: text }),
      ...(signal ? { signal } : {}),
    });
  }

  /** Calls the port of metrics and detailed health. */
  async operator(path: string): Promise<Response> {
    const { port } = await this.line('metrics');
    return fetch(`http://127.0.0.1:${port}${path}`);
  }

  generate(changes: Partial<GenerationRequest>, signal?: AbortSignal): Promise<Response> {
    return this.call('/generate', request({ model: 'continuo-mini', ...changes }), signal);
  }

  /** Returns the models by name. */
  async models(): Promise<Readonly<Record<string, OriginModel>>> {
    const { models } = (await (await this.call('/models')).json()) as { models: OriginModel[] };
    return Object.fromEntries(models.map((model) => [model.id, model]));
  }
}
