import { describe, expect, test } from 'vitest';
import { originHealth } from '../../../shared/origin-model.ts';
import { request } from '../../support/generation-request.ts';
import { eventsOf } from './generation-events.ts';
import { originForEachTest, RunningOrigin } from './running-origin.ts';

const origin = originForEachTest();

describe('GET /health', () => {
  const health = async () => {
    const bare = await origin.call('/health', { signature: null });
    const detailed = await origin.operator('/health');
    const { status } = originHealth.parse(await detailed.json());
    expect([bare.status, await bare.json()]).toEqual([detailed.status, { status }]);
    return [bare.status, status];
  };

  test('reports every state, with 200 only while requests are accepted, and details only to operators', async () => {
    const fresh = await RunningOrigin.start();
    const loading = await fresh.call('/health', { signature: null });
    expect([loading.status, await loading.json()]).toEqual([503, { status: 'loading' }]);
    const refusal = await fresh.error('/generate', { body: request() });
    expect(refusal).toMatchObject({ status: 503, code: 'model_loading' });
    expect(refusal.headers.get('retry-after')).toBe('5');
    fresh.stop();

    expect(await health()).toEqual([200, 'ready']);
    origin.engine.status = { running: 0, waiting: 0, healthy: false };
    expect(await health()).toEqual([503, 'unhealthy']);
    origin.service.drain();
    expect(await health()).toEqual([503, 'draining']);
  });

  test('draining lets running requests finish and accepts no more', async () => {
    origin.engine.script = () => undefined;
    const running = await origin.call('/generate', { body: request() });
    origin.service.drain();
    let idle = false;
    const whenIdle = origin.service.whenIdle().then(() => {
      idle = true;
    });
    const refusal = await origin.error('/generate', { body: request() });
    expect(refusal).toMatchObject({ status: 503, code: 'server_is_overloaded' });
    expect(idle).toBe(false);
    origin.engine.finish(origin.engine.submissions[0]?.requestId ?? '');
    expect((await eventsOf(running)).at(-1)?.type).toBe('done');
    await whenIdle;
  });
});
