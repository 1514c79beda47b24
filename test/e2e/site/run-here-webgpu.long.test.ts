import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import { buildModel } from '../../../origin/export/build.ts';
import type { Checkpoint } from '../../../origin/export/checkpoint/checkpoint.ts';
import { openSafetensors } from '../../../origin/export/checkpoint/safetensors.ts';
import type { ChosenDevice } from '../../../worker/site/local/messages.ts';
import { CASES } from '../../origin/export/family-cases.ts';
import { hashedCheckpoint } from '../../origin/export/hashed-checkpoint.ts';
import { writeLlama } from '../../origin/export/written-checkpoint.ts';
import { findChromium } from '../../support/browser/chromium.ts';
import { launchChromium, openPage, type SitePage, typeInto } from '../../support/browser/site-page.ts';
import { siteTest as test } from '../../support/browser/site-test.ts';
import { writeByteTokenizer } from '../../support/synthetic/byte-tokenizer.ts';
import { button, PROMPT, textOf } from './playground-page.ts';

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
  const folder = mkdtempSync(path.join(tmpdir(), 'webgpu-'));
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
          if (data.type === 'text') document.title = `${texts.join('').length} characters`;
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

type Choice = { readonly text: string; readonly logprobs: { readonly token_logprobs: readonly number[] } };
const choicesOf = ({ texts }: Said): Choice[] => texts.flatMap((text) => JSON.parse(text).choices);

/** Compares texts and logprobs of the model in the page's file field on both devices. */
async function expectEqualTexts({ page, requestedUrls, consoleErrors }: SitePage): Promise<void> {
  const thread = requestedUrls.find((url) => /\/assets\/main-[^/]+\.js$/.test(url))!;
  const bodies = REQUESTS.map((request) => ({ model: 'tiny', ...request }));
  const wasm = await ask(page, thread, 'wasm', bodies);
  const webgpu = await ask(page, thread, 'webgpu', bodies);
  expect(webgpu.devices).toEqual([{ kind: 'webgpu', reason: null }]);
  const [expected, choices] = [choicesOf(wasm), choicesOf(webgpu)];
  expect(choices.map(({ text }) => text)).toEqual(expected.map(({ text }) => text));
  for (const [index, { logprobs }] of choices.entries())
    for (const [at, logprob] of logprobs.token_logprobs.entries())
      expect(logprob).toBeCloseTo(expected[index]!.logprobs.token_logprobs[at]!, 4);
  expect(consoleErrors).toEqual([]);
}

test('an emulated adapter is refused unless the visitor wants it, gives the tokens of WebAssembly then, and when it is lost in the middle of a text, WebAssembly completes it, and the page says so', async ({
  system,
}) => {
  const site = await openPage(browser, system, '/');
  const { page } = site;
  await button(page, 'Run here').click();
  await files(page).setInputFiles(await builtModel());
  await dialog(page).getByText('tiny runs on the processor').waitFor();
  await dialog(page).getByText('WebGPU is emulated by the processor here').waitFor();
  const isBuild = (url: string) => /jspi.*\.wasm$/.test(url);
  expect(site.requestedUrls.filter(isBuild)).toEqual([]);

  await expectEqualTexts(site);
  expect(site.requestedUrls.filter(isBuild)).toHaveLength(1);

  await dialog(page).getByLabel('Device').selectOption('webgpu');
  await files(page).setInputFiles(await builtModel());
  await dialog(page).getByText('tiny runs on the graphics card').waitFor({ timeout: OPENING_MS });
  await site.screenshot('run-here-webgpu');
  expect(await site.violations()).toEqual([]);
  await page.keyboard.press('Escape');
  await typeInto(page.getByLabel('max_tokens', { exact: true }), '200');
  await page.locator('summary', { hasText: 'Tokens' }).click();
  await page.getByLabel('ignore_eos', { exact: true }).selectOption('true');
  await typeInto(textOf(page), PROMPT);
  await button(page, 'Complete').click();
  const tokens = textOf(page).locator('.token');
  await tokens.nth(10).waitFor({ state: 'attached', timeout: OPENING_MS });
  await (await browser.newBrowserCDPSession()).send('Browser.crashGpuProcess');
  await page.getByRole('status').getByText('Finished: length').waitFor({ timeout: OPENING_MS });
  await page.getByText(/\+ 200 tokens/).waitFor();
  await button(page, 'Run here').click();
  await dialog(page).getByText('WebGPU failed, so WebAssembly goes on').waitFor();
  await site.close();
});

test.for([
  ['a delta rule beside attention', 'qwen3_5_text'],
  ['Mamba 2', 'mamba2'],
] as const)(
  'a model with %s keeps its states on the device, and gives the tokens of WebAssembly',
  async ([, family], { system }) => {
    const site = await openPage(browser, system, '/');
    await button(site.page, 'Run here').click();
    await files(site.page).setInputFiles(await builtModel(checkpointOf(family)));
    await dialog(site.page).getByText('tiny runs on the processor').waitFor();
    await expectEqualTexts(site);
    await site.close();
  },
);
