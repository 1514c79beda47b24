import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { bytesOf, type TokenBytes } from '../../../../origin/tokenizer/token-bytes.ts';
import type { Judgement, SchemaCase, Style } from './schemas.ts';

const SCRIPT = path.resolve(import.meta.dirname, 'rival_engine.py');

/** A schema that takes longer counts as refused. */
const TIME_LIMIT_MS = 20_000;
const START_LIMIT_MS = 120_000;

/** An engine of a Python package in a process of its own, which a crash or an endless compilation ends. */
export class RivalEngine implements AsyncDisposable {
  readonly name: 'llguidance' | 'xgrammar';
  readonly #python: string;
  readonly #start: string;
  #process: ChildProcess | null = null;
  #lines: AsyncIterator<string> | null = null;
  #reader: Interface | null = null;

  constructor(name: RivalEngine['name'], python: string, vocabulary: TokenBytes, style: Style) {
    this.name = name;
    this.#python = python;
    const ids = Array.from({ length: vocabulary.vocabularySize }, (_, id) => id);
    const tokens = ids.map((id) => Buffer.from(bytesOf(vocabulary, id)).toString('base64'));
    const special = ids.filter((id) => vocabulary.special[id] === 1);
    this.#start = JSON.stringify({ engine: name, tokens, special, end: special[0], style });
  }

  async judge({ schema, tests }: SchemaCase): Promise<Judgement> {
    if (this.#process === null) await this.#open();
    const job = { schema: JSON.stringify(schema), texts: tests.map(({ data }) => JSON.stringify(data)) };
    const line = await this.#ask(JSON.stringify(job), TIME_LIMIT_MS);
    if (line === null) return { compileMs: TIME_LIMIT_MS, accepted: null, maskMs: [] };
    const { compileMs, accepted, maskMs } = JSON.parse(line) as Partial<Judgement> & { compileMs: number };
    return { compileMs, accepted: accepted ?? null, maskMs: maskMs ?? [] };
  }

  /** @throws Error if the package is missing */
  async #open(): Promise<void> {
    const child = spawn(this.#python, [SCRIPT], { stdio: ['pipe', 'pipe', 'pipe'] });
    let log = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      log = (log + text).slice(-2_000);
    });
    child.stdin.on('error', () => {});
    this.#process = child;
    this.#reader = createInterface(child.stdout);
    this.#lines = this.#reader[Symbol.asyncIterator]();
    if ((await this.#ask(this.#start, START_LIMIT_MS)) === null) throw new Error(`${this.name}: ${log}`);
  }

  /** Returns the next line; null if the process ends or is too slow, after which it is gone. */
  async #ask(line: string, limitMs: number): Promise<string | null> {
    this.#process?.stdin?.write(`${line}\n`);
    const timer = setTimeout(() => this.#process?.kill('SIGKILL'), limitMs);
    const answer = await this.#lines?.next();
    clearTimeout(timer);
    if (answer !== undefined && !answer.done) return answer.value;
    await this[Symbol.asyncDispose]();
    return null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const child = this.#process;
    this.#process = null;
    this.#reader?.close();
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
}
