import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { Page } from 'playwright-core';
import { findChromium, NO_CHROMIUM } from '../../support/browser/chromium.ts';
import { launchChromium, openPage, typeInto } from '../../support/browser/site-page.ts';
import { type LocalServer, serve } from '../../support/local-server.ts';
import type { Figures } from './figures.ts';
import { rounded } from './statistics.ts';

/** Measures the tasks of the page's main thread in Chromium while a model in its thread generates. */

/** Longer tasks delay what the visitor types. */
const LONG_MS = 50;
/** A run of some thousand tokens on a busy machine. */
const RUN_MS = 300_000;
const PROMPT = 'Once upon a time there was a king who had three sons.';

const SITE = path.resolve(import.meta.dirname, '../../../worker/site');
const PUBLIC = path.join(SITE, 'dist/public');
const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css',
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.svg': 'image/svg+xml',
  '.wasm': 'application/wasm',
};

/** Serves the built page without an endpoint, which would take its share of the processor. */
function servePage(): Promise<LocalServer> {
  execFileSync(process.execPath, [path.join(SITE, 'build/main.ts')], { stdio: 'pipe' });
  return serve(({ url = '/' }, response) => {
    const { pathname } = new URL(url, 'http://page');
    const file = path.join(PUBLIC, pathname === '/' ? 'index.html' : pathname);
    const type = TYPES[path.extname(file)];
    if (type === undefined || !existsSync(file)) return response.writeHead(404).end();
    return response.writeHead(200, { 'content-type': type }).end(readFileSync(file));
  });
}

/** An event of Chromium's trace; times in microseconds. */
interface TraceEvent {
  readonly name: string;
  readonly pid: number;
  readonly tid: number;
  readonly ts: number;
  readonly dur?: number;
  /** Of the processor. */
  readonly tdur?: number;
  readonly args?: { readonly name?: string };
}

interface Tasks {
  readonly count: number;
  /** Tasks above 50 ms that the page itself was told of. */
  readonly longTasks: number;
  /** On the clock, of the longest tasks. */
  readonly clockMs: readonly number[];
  /** Of the processor, of the tasks that took most of it. */
  readonly processorMs: readonly number[];
}

/** Runs something in the page, and returns the tasks that its main thread had meanwhile. */
async function tasksDuring(page: Page, run: () => Promise<void>): Promise<Tasks> {
  const browser = page.context().browser()!;
  await browser.startTracing(page, {
    categories: ['disabled-by-default-devtools.timeline', 'devtools.timeline', 'blink.user_timing'],
  });
  await page.evaluate(() => {
    performance.mark('bench-begin');
    const seen = { count: 0 };
    const observer = new PerformanceObserver((list) => (seen.count += list.getEntries().length));
    observer.observe({ type: 'longtask' });
    Reflect.set(globalThis, 'seenLongTasks', seen);
  });
  await run();
  const longTasks = await page.evaluate(() => {
    performance.mark('bench-end');
    return (Reflect.get(globalThis, 'seenLongTasks') as { count: number }).count;
  });
  const trace = JSON.parse((await browser.stopTracing()).toString()) as { traceEvents: TraceEvent[] };
  const [begin, end] = ['bench-begin', 'bench-end'].map((mark) =>
    trace.traceEvents.find(({ name }) => name === mark),
  ) as [TraceEvent, TraceEvent];
  const tasks = trace.traceEvents.filter(
    ({ name, pid, tid, ts, dur }) =>
      name === 'RunTask' &&
      dur !== undefined &&
      [pid === begin.pid, tid === begin.tid, ts > begin.ts, ts < end.ts].every(Boolean),
  );
  const most = (durations: readonly number[]) =>
    durations
      .toSorted((a, b) => b - a)
      .slice(0, 3)
      .map((duration) => duration / 1_000);
  return {
    count: tasks.length,
    longTasks,
    clockMs: most(tasks.map(({ dur = 0 }) => dur)),
    processorMs: most(tasks.map(({ tdur = 0 }) => tdur)),
  };
}

async function openModel(page: Page, directory: string): Promise<void> {
  await page.getByRole('button', { name: 'Run here', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'Run a model in this browser' });
  await dialog.getByLabel('Device').selectOption('wasm');
  await dialog.locator('input[type=file]').setInputFiles(directory);
  await dialog.getByText(`${path.basename(directory)} runs on the processor`).waitFor({ timeout: RUN_MS });
  await page.keyboard.press('Escape');
}

/** Completes a text in the playground with `n` choices. */
async function completeText(page: Page, tokens: number, n: number): Promise<Tasks> {
  await typeInto(page.getByRole('textbox', { name: 'Text' }), PROMPT);
  await typeInto(page.getByLabel('max_tokens', { exact: true }), String(tokens));
  await typeInto(page.getByLabel('n', { exact: true }), String(n));
  return tasksDuring(page, async () => {
    await page.getByRole('button', { name: 'Complete', exact: true }).click();
    await page.getByRole('status').getByText('Finished').waitFor({ timeout: RUN_MS });
  });
}

const untilEnded = (page: Page): Promise<void> =>
  page.getByRole('button', { name: 'Stop', exact: true, disabled: true }).waitFor({ timeout: RUN_MS });

/** Compares the answers of two requests to one prompt. */
async function compareAnswers(page: Page, tokens: number, n: number): Promise<Tasks> {
  await page.getByRole('link', { name: 'Compare', exact: true }).click();
  await typeInto(page.getByRole('textbox', { name: 'Prompt' }), PROMPT);
  await typeInto(page.getByLabel('n', { exact: true }), String(n));
  for (const name of ['A', 'B']) {
    const settings = page.getByRole('region', { name: `Settings of ${name}` });
    await typeInto(settings.getByLabel('max_tokens', { exact: true }), String(tokens));
    await settings.getByLabel(`Model of ${name}`).selectOption({ index: 0 });
  }
  return tasksDuring(page, async () => {
    await page.getByRole('button', { name: 'Compare', exact: true }).click();
    await page.getByRole('region', { name: 'Answer of A' }).waitFor();
    await untilEnded(page);
  });
}

/** Branches a tree `n` times at once. */
async function branchTree(page: Page, tokens: number, n: number): Promise<Tasks> {
  await page.getByRole('link', { name: 'Tree', exact: true }).click();
  await typeInto(page.locator('.tree-start').getByRole('textbox'), PROMPT);
  await page.keyboard.press('Control+Enter');
  await page.locator('.branch-card').first().waitFor();
  await untilEnded(page);
  await typeInto(page.getByLabel('n', { exact: true }), String(n));
  await typeInto(page.getByLabel('max_tokens', { exact: true }), String(tokens));
  return tasksDuring(page, async () => {
    await page.getByRole('button', { name: 'Branch', exact: true }).click();
    await page.getByRole('button', { name: 'Stop', exact: true, disabled: false }).waitFor();
    await untilEnded(page);
  });
}

export async function measureTasks(directory: string, tokens: number): Promise<Figures> {
  const chromium = findChromium();
  if (chromium === null) return [['tasks of the main thread', NO_CHROMIUM]];
  const site = await servePage();
  const browser = await launchChromium(chromium);
  try {
    const { page } = await openPage(browser, { url: site.url, apiKey: '' }, '/', { key: null });
    await openModel(page, path.resolve(directory));
    await page.getByText('Tokens', { exact: true }).click();
    await page.getByLabel('ignore_eos', { exact: true }).selectOption('true');
    const measured: [string, Tasks][] = [
      ['one text', await completeText(page, tokens, 1)],
      ['four choices', await completeText(page, tokens, 4)],
      ['Compare', await compareAnswers(page, tokens, 1)],
      ['Tree', await branchTree(page, tokens, 4)],
    ];
    const list = (times: readonly number[]) => times.map((ms) => rounded(ms, 1)).join(', ');
    return measured.map(([name, { count, longTasks, clockMs, processorMs }]) => [
      `${name}: longest tasks of the main thread, ms`,
      `${list(clockMs)}; processor ${list(processorMs)} (${longTasks} of ${count} above ${LONG_MS})`,
    ]);
  } finally {
    await browser.close();
    await site.stop();
  }
}
