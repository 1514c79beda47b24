/// <reference path="../../../worker/site/local/thread/onnxruntime-web.d.ts" />
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import createModule from 'onnxruntime-web/ort-wasm-simd-threaded.mjs';
import { LocalModel, type ModelFiles, type OrtWasm } from '../../../origin/local/local-model.ts';
import { openWebSession, textsIn } from '../../../origin/model/web/open-web-model.ts';
import { WasmRuntime } from '../../../origin/model/web/wasm-runtime.ts';
import { argmax } from '../../../origin/sampling/argmax.ts';
import { respond } from '../../../worker/site/local/thread/local-response.ts';
import { BareLoop } from './ceiling.ts';
import type { Figures } from './figures.ts';
import { mean, median, rounded } from './statistics.ts';

/** Measures the thread of the page as Node runs it: its own code and WebAssembly, beside the bare loop. */

const WASM = createRequire(import.meta.url).resolve('onnxruntime-web/ort-wasm-simd-threaded.wasm');
/** The bare loop stays at the mean length of the measured text. */
const PROMPT_TOKENS = 4;
const BARE_MS = 1_000;

const newModule = async (): Promise<OrtWasm> =>
  (await createModule({ numThreads: 1, wasmBinary: readFileSync(WASM) })) as OrtWasm;

const filesOf = (directory: string): ModelFiles =>
  new Map(readdirSync(directory).map((name) => [name, readFileSync(path.join(directory, name))]));

/** Returns the bare loop's tokens/s: the same graph and session, one row per run, and the largest logit. */
function bareRate(loop: BareLoop): number {
  const begun = performance.now();
  for (let runs = 1; ; runs++) {
    loop.run();
    argmax(loop.logits);
    const elapsed = performance.now() - begun;
    if (elapsed >= BARE_MS) return (1_000 * runs) / elapsed;
  }
}

async function openBare(files: ModelFiles, tokens: number): Promise<BareLoop> {
  const runtime = new WasmRuntime(await newModule());
  const { session, decoder } = await openWebSession(files, textsIn(files, 'bench'), runtime);
  const context = PROMPT_TOKENS + Math.round(tokens / 2);
  const loop = new BareLoop(session, decoder, { batch: 1, context, output: decoder.logits });
  loop.fill();
  return loop;
}

/** Returns the tokens/s of a streamed completion between its first and its last event. */
async function streamRate(local: LocalModel, fields: object, tokens: number): Promise<number> {
  const request = { model: 'bench', prompt: 'Once upon a time', max_tokens: tokens, stream: true };
  const body = JSON.stringify({ ...request, ignore_eos: true, ...fields });
  const times: number[] = [];
  const text = () => times.push(performance.now());
  const parts = { head: () => undefined, text };
  await respond(local, { body, dialect: null, fingerprint: '' }, parts, new AbortController().signal);
  return (1_000 * (tokens - 1)) / (times.at(-1)! - times[0]!);
}

const KINDS = {
  greedy: { temperature: 0 },
  'sampled, with 5 logprobs': { temperature: 0.8, seed: 1, logprobs: 5, return_token_ids: true },
};

export async function measureBrowser(directory: string, tokens: number, waves: number): Promise<Figures> {
  const files = filesOf(directory);
  const local = await LocalModel.open({ name: 'bench', files, module: await newModule(), turn });
  const bare = await openBare(files, tokens);
  const figures: [string, string][] = [];
  for (const [name, fields] of Object.entries(KINDS)) {
    const [rates, bares]: [number[], number[]] = [[], [bareRate(bare)]];
    for (let wave = -1; wave < waves; wave++) {
      const rate = await streamRate(local, fields, tokens);
      // The first wave warms up.
      if (wave >= 0) rates.push(rate);
      if (wave >= 0) bares.push(bareRate(bare));
    }
    const shares = rates.map((rate, wave) => (100 * rate) / mean(bares.slice(wave, wave + 2)));
    const value = `${rounded(median(rates))} of ${rounded(mean(bares))} (${rounded(median(shares))} %)`;
    figures.push([`${name}: tokens/s of the thread, of the bare loop`, value]);
  }
  bare.dispose();
  return figures;
}
