import type { Page } from 'playwright-core';
import * as z from 'zod';
import { findChromium } from '../../support/browser/chromium.ts';
import { singleTokens } from '../../support/browser/single-tokens.ts';
import { launchChromium, openPage, typeInto } from '../../support/browser/site-page.ts';
import { startSystem } from '../../support/system.ts';
import type { Measurement, Scenario } from './scenario.ts';

const TOKENS = 4_000;
const PER_SECOND = 680;
const MAX_TASK_MS = 50;

/** Texts of as many tokens, in one paragraph and in many. */
const TEXTS = {
  'one paragraph': (index: number) => ` w${index}`,
  'paragraphs of 40 tokens': (index: number) => (index % 40 === 39 ? '\n\n' : ` w${index}`),
  'lines of one token': (index: number) => `w${index}\n`,
};

const traceEvent = z.object({
  name: z.string(),
  pid: z.number(),
  tid: z.number(),
  dur: z.number().optional(),
  tdur: z.number().optional(),
  args: z.object({ name: z.string().optional() }).loose().optional(),
});
const EVENTS = z.object({ value: z.array(traceEvent) });

/** Runs what a page does and returns the CPU times of the tasks of its main thread, in milliseconds. */
async function tasksDuring(page: Page, act: () => Promise<void>): Promise<number[]> {
  const session = await page.context().newCDPSession(page);
  const events: z.infer<typeof traceEvent>[] = [];
  session.on('Tracing.dataCollected', (data) => events.push(...EVENTS.parse(data).value));
  await session.send('Tracing.start', {
    traceConfig: { includedCategories: ['toplevel', '__metadata'], recordMode: 'recordContinuously' },
  });
  await act();
  const complete = new Promise((resolve) => session.once('Tracing.tracingComplete', resolve));
  await session.send('Tracing.end');
  await complete;
  await session.detach();
  const threads = new Set(
    events
      .filter(({ name, args }) => name === 'thread_name' && args?.name === 'CrRendererMain')
      .map(({ pid, tid }) => `${pid} ${tid}`),
  );
  return (
    events
      .filter(
        ({ name, pid, tid }) => name === 'ThreadControllerImpl::RunTask' && threads.has(`${pid} ${tid}`),
      )
      // The clock of a thread advances in steps on some virtual machines, so that it can pass the wall clock.
      .map(({ dur = 0, tdur = 0 }) => Math.min(dur, tdur) / 1_000)
  );
}

/** Streams single tokens into the playground. */
export const pageStream: Scenario = {
  name: 'page-stream',
  summary: `the page receives ${TOKENS} tokens as events of their own, ${PER_SECOND} per second`,
  run: async () => {
    const system = await startSystem();
    const browser = await launchChromium(findChromium() ?? 'chromium');
    const measurements: Measurement[] = [];
    for (const [name, textOf] of Object.entries(TEXTS)) {
      const upstream = await singleTokens(
        Array.from({ length: TOKENS }, (_, index) => textOf(index)),
        PER_SECOND,
      );
      const { page, close } = await openPage(browser, system, '/');
      await page.route('**/v1/completions', (route) => route.continue({ url: upstream.url }));
      await typeInto(page.getByRole('textbox', { name: 'Text' }), 'Once upon a time');
      const tasks = await tasksDuring(page, async () => {
        await page.keyboard.press('Control+Enter');
        await page.getByRole('status').getByText('Finished').waitFor();
        // Storing and counting the text are part of it.
        await page.waitForTimeout(1_500);
      });
      measurements.push(
        { figure: `${name}: longest task, CPU ms`, value: Math.max(...tasks), atMost: MAX_TASK_MS },
        { figure: `${name}: all tasks, CPU s`, value: tasks.reduce((sum, task) => sum + task, 0) / 1_000 },
      );
      await close();
      await upstream.stop();
    }
    await browser.close();
    await system.stop();
    return measurements;
  },
};
