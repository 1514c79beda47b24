import { describe, expect, onTestFinished, test } from 'vitest';
import { usageAccount } from '../../../shared/generation.ts';
import { request } from '../../support/generation-request.ts';
import { writtenForm } from '../../support/written-form.ts';
import { RunningOrigin } from './running-origin.ts';

const FORM = writtenForm({ keepAliveMs: 4 });

const ACCOUNT = /<!--(.*?)-->/g;

/** No heartbeat of its own would ever come. */
async function started(): Promise<RunningOrigin> {
  const origin = await (await RunningOrigin.start({ heartbeatMs: 600_000 })).ready();
  onTestFinished(() => origin.stop());
  return origin;
}

describe('POST /generate for a caller', () => {
  test('tells in an account before the end that, and how, the generation has ended', async () => {
    const origin = await started();
    origin.engine.script = () => {};
    const answer = await origin.call('/generate', { body: request({ written: FORM }) });
    origin.engine.finish(origin.engine.submissions[0]!.requestId);
    expect(answer.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    const text = await answer.text();
    const accounts = [...text.matchAll(ACCOUNT)].map(([, json]) => usageAccount.parse(JSON.parse(json!)));
    expect(accounts[0]).toMatchObject({ ended: false });
    expect(accounts.at(-1)).toMatchObject({
      ended: true,
      finishReasons: ['length'],
      usage: { promptTokens: 3, cachedTokens: 1, completionTokens: 2 },
    });
    expect(text.lastIndexOf('-->')).toBeLessThan(text.indexOf('"finish_reason":"length"'));
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
  });

  test('writes comments in the silence that its caller is promised them in, while the engine works', async () => {
    const origin = await started();
    origin.engine.script = () => {};
    const work = setInterval(() => {
      origin.engine.status = { ...origin.engine.status };
    }, 1);
    onTestFinished(() => clearInterval(work));
    const answer = await origin.call('/generate', { body: request({ written: FORM }) });
    let seen = '';
    for await (const part of answer.body!.pipeThrough(new TextDecoderStream())) {
      seen += part;
      if (seen.includes(': keep-alive\n\n')) break;
    }
    expect(seen.replaceAll(ACCOUNT, '')).toBe(': keep-alive\n\n');
  });
});
