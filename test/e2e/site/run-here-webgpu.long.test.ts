import path from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest';
import { buildModel } from '../../../origin/export/build.ts';
import type { Checkpoint } from '../../../origin/export/checkpoint/checkpoint.ts';
import { openSafetensors } from '../../../origin/export/checkpoint/safetensors.ts';
import type { ChosenDevice, FromThread } from '../../../worker/site/local/messages.ts';
import { CASES } from '../../origin/export/family-cases.ts';
import { hashedCheckpoint } from '../../origin/export/hashed-checkpoint.ts';
import { writeLlama } from '../../origin/export/written-checkpoint.ts';
import { findChromium } from '../../support/browser/chromium.ts';
import { launchChromium, openPage, type SitePage } from '../../support/browser/site-page.ts';
import { siteTest as test } from '../../support/browser/site-test.ts';
import { newDirectory } from '../../support/new-directory.ts';
import { writeByteTokenizer } from '../../support/synthetic/byte-tokenizer.ts';
import type { System } from '../../support/system.ts';
import { button, PROMPT } from './playground-page.ts';

/** WebGPU on the processor, by the adapter that Chromium brings. */
const SOFTWARE_ADAPTER = [
  ...['--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader'],
  '--enable-features=Vulkan',
];
/** It compiles the kernels of a model, twice for some runs, and computes them on the processor. */
const OPENING_MS = 100_000;
const VOCABULARY = 320;

let browser: Browser;

beforeAll(async () => {
  const chromium = findChromium();
  if (chromium !== null) browser = await launchChromium(chromium, SOFTWARE_ADAPTER);
});
afterAll(() => browser?.close());

/**
 * Builds a random Llama, or another model, and returns its directory. In float32, because quantized ones
 * round activations, and random weights have many near-ties.
 */
async function builtModel(other?: Checkpoint): Promise<string> {
  const folder = newDirectory();
  const checkpoint =
    other ?? (await openSafetensors(writeLlama(folder, { vocabulary: VOCABULARY }).directory));
  const model = path.join(folder, 'tiny');
  await buildModel(checkpoint, { precision: 'fp32', directory: model });
  await checkpoint.close();
  writeByteTokenizer(model, VOCABULARY);
  return model;
}

/** A random checkpoint of a family whose layers have states, with as many tokens as the tokenizer. */
function checkpointOf(family: string): Checkpoint {
  const { config, tensors } = CASES.find(({ name }) => name === family)!;
  const { vocab_size: given } = config;
  const shapes = Object.entries(tensors).map(
    ([name, shape]) => [name, shape.map((size) => (size === given ? VOCABULARY : size))] as const,
  );
  return hashedCheckpoint({ ...config, vocab_size: VOCABULARY }, Object.fromEntries(shapes));
}

const dialog = (page: Page) => page.getByRole('dialog', { name: 'Run a model in this browser' });
const files = (page: Page) => dialog(page).locator('input[type=file]');

/** What a thread has said of its device, and the texts of its answers. */
interface Said {
  readonly devices: readonly { readonly kind: string; readonly reason: string | null }[];
  readonly texts: readonly string[];
}

/** Opens the model of the page's file field in a thread, and sends it requests. */
const ask = (page: Page, thread: string, device: ChosenDevice, bodies: readonly object[]): Promise<Said> =>
  page.evaluate(
    ([address, chosen, requests]) =>
      new Promise<Said>((resolve, reject) => {
        const own = document.querySelector<HTMLInputElement>('input[type=file]')!.files!;
        const worker = new Worker(address, { type: 'module' });
        const devices: Said['devices'][number][] = [];
        document.title = 'no event';
        const texts = requests.map(() => '');
        let open = texts.length;
        worker.addEventListener('error', ({ message }) => reject(new Error(message)));
        worker.addEventListener('message', ({ data }) => {
          if (data.type === 'failed') reject(new Error(data.message));
          if (data.type === 'opened' || data.type === 'moved') devices.push(data.device);
          if (data.type === 'opened')
            for (const [id, body] of requests.entries())
              worker.postMessage({ type: 'request', id, body: JSON.stringify(body), dialect: null });
          if (data.type === 'text') texts[data.id] += data.text;
          if (data.type === 'text') document.title = `${texts.at(-1)!.split('data: ').length - 1} events`;
          if (data.type !== 'end' || --open > 0) return;
          worker.terminate();
          resolve({ devices, texts });
        });
        const given = new Map(Array.from(own, (file) => [file.name, file]));
        worker.postMessage({ type: 'open', device: chosen, name: 'tiny', files: given });
      }),
    [thread, device, bodies] as const,
  );

const REQUESTS = [
  { prompt: `${PROMPT} who had three sons`, temperature: 0, max_tokens: 24, logprobs: 2 },
  { prompt: PROMPT, temperature: 0.9, seed: 7, max_tokens: 12, n: 2, logprobs: 2 },
];

/** A stream of many tokens. */
const STREAM = {
  prompt: PROMPT,
  temperature: 0,
  max_tokens: 100,
  ignore_eos: true,
  stream: true,
  logprobs: 0,
};

interface Choice {
  readonly text: string;
  /** Null in an event that only ends a stream. */
  readonly logprobs: { readonly token_logprobs: readonly number[] } | null;
}

/** Of responses, and of the events of streams. */
const choicesOf = ({ texts }: Said): Choice[] =>
  texts.flatMap((text) =>
    text
      .split(/^data: /m)
      .filter((json) => json.startsWith('{'))
      .flatMap((json) => JSON.parse(json).choices as Choice[]),
  );

/** Opens the dialog, and lets the page open a model of the visitor. */
async function pageWith(model: string, system: System): Promise<SitePage> {
  const site = await openPage(browser, system, '/');
  onTestFinished(() => site.close());
  await button(site.page, 'Run here').click();
  await files(site.page).setInputFiles(model);
  await dialog(site.page).getByText('tiny runs on the processor').waitFor();
  return site;
}

const threadOf = ({ requestedUrls }: SitePage): string =>
  requestedUrls.find((url) => /\/assets\/main-[^/]+\.js$/.test(url))!;

const bodiesOf = (requests: readonly object[]) => requests.map((request) => ({ model: 'tiny', ...request }));

function expectEqualChoices(webgpu: Said, wasm: Said): void {
  const [choices, expected] = [choicesOf(webgpu), choicesOf(wasm)];
  expect(choices.map(({ text }) => text)).toEqual(expected.map(({ text }) => text));
  const logprobsOf = (all: readonly Choice[]) =>
    all.flatMap(({ logprobs }) => logprobs?.token_logprobs ?? []);
  const reference = logprobsOf(expected);
  expect(logprobsOf(choices)).toHaveLength(reference.length);
  for (const [at, logprob] of logprobsOf(choices).entries()) expect(logprob).toBeCloseTo(reference[at]!, 4);
}

test.for([
  ['a delta rule beside attention', 'qwen3_5_text'],
  ['Mamba 2', 'mamba2'],
] as const)(
  'a model with %s keeps its states on the device, and gives the tokens of WebAssembly',
  async ([, family], { system }) => {
    const site = await pageWith(await builtModel(checkpointOf(family)), system);
    const wasm = await ask(site.page, threadOf(site), 'wasm', bodiesOf(REQUESTS));
    const webgpu = await ask(site.page, threadOf(site), 'webgpu', bodiesOf(REQUESTS));
    expect(webgpu.devices).toEqual([{ kind: 'webgpu', reason: null }]);
    expectEqualChoices(webgpu, wasm);
    expect(site.consoleErrors).toEqual([]);
  },
);

test('an emulated adapter is refused unless the visitor wants it, and WebAssembly completes what it loses', async ({
  system,
}) => {
  const site = await pageWith(await builtModel(), system);
  const { page } = site;
  await dialog(page).getByText('WebGPU is emulated by the processor here').waitFor();
  const isBuild = (url: string) => /jspi.*\.wasm$/.test(url);
  expect(site.requestedUrls.filter(isBuild)).toEqual([]);

  const bodies = bodiesOf([...REQUESTS, STREAM]);
  const wasm = await ask(page, threadOf(site), 'wasm', bodies);
  const protocol = await browser.newBrowserCDPSession();
  const webgpu = ask(page, threadOf(site), 'webgpu', bodies);
  await page.waitForFunction(() => Number.parseInt(document.title, 10) > 10, null, { timeout: OPENING_MS });
  await protocol.send('Browser.crashGpuProcess');
  const said = await webgpu;
  expect(said.devices).toEqual([
    { kind: 'webgpu', reason: null },
    { kind: 'wasm', reason: expect.stringContaining('WebGPU failed, so WebAssembly goes on') },
  ]);
  expectEqualChoices(said, wasm);
  expect(site.requestedUrls.filter(isBuild)).toHaveLength(1);
});

interface SilentThread extends Worker {
  /** What the page has sent to it. */
  sent?: { readonly device: ChosenDevice };
}

test('a visitor chooses WebGPU, and the page says on what the model runs, and that it has moved', async ({
  system,
}) => {
  const model = await builtModel();
  const site = await pageWith(model, system);
  const { page } = site;
  // Threads open nothing from here on, and say what the test says.
  const threads = await page.evaluateHandle(() => {
    const silent: SilentThread[] = [];
    Worker.prototype.postMessage = function (this: SilentThread, message) {
      silent.push(Object.assign(this, { sent: message }));
    };
    return silent;
  });
  const say = (data: FromThread) =>
    threads.evaluate(
      (all, said) => all.at(-1)!.dispatchEvent(new MessageEvent('message', { data: said })),
      data,
    );
  await dialog(page).getByLabel('Device').selectOption('webgpu');
  await files(page).setInputFiles(model);
  await expect.poll(() => threads.evaluate((all) => all.at(-1)?.sent?.device)).toBe('webgpu');
  const opened = { type: 'opened', name: 'tiny', context: 64, kept: null, card: 'card' } as const;
  await say({ ...opened, device: { kind: 'webgpu', reason: null } });
  await dialog(page).getByText('tiny runs on the graphics card of this device: WebGPU, card').waitFor();
  await site.screenshot('run-here-webgpu');
  expect(await site.violations()).toEqual([]);
  await say({ type: 'moved', device: { kind: 'wasm', reason: 'WebGPU failed.' } });
  await dialog(page)
    .getByText(/tiny runs on the processor.*WebGPU failed\./)
    .waitFor();
});
