import { describe, expect, test } from 'vitest';
import { completion, tenantWithKey } from '../admin/admin-client.ts';
import { KEY } from '../support/worker.ts';
import { upstreamsForTests } from './upstreams-for-tests.ts';

const { openAi, worker, log } = upstreamsForTests();

const FAIRNESS = 'x-llm-d-inference-fairness-id';
const OBJECTIVE = 'x-llm-d-inference-objective';

describe('a router of llm-d', () => {
  test('gets one pseudonym per tenant, by which it shares its capacity', async () => {
    const { key } = await tenantWithKey(worker, 'another');
    for (const caller of [KEY, KEY, key])
      await completion(worker, caller, { model: 'cluster', user: caller });
    const [first, again, other] = openAi.headers.map((headers) => headers[FAIRNESS]);
    expect(first).toMatch(/^[0-9a-f]{64}$/);
    expect(again).toBe(first);
    expect(other).toMatch(/^[0-9a-f]{64}$/);
    expect(other).not.toBe(first);
    expect(JSON.stringify(openAi.headers)).not.toContain('another');
  });

  test.each([
    [{}, 'default', undefined],
    [{ service_tier: 'default' }, 'default', undefined],
    [{ service_tier: 'flex' }, 'flex', 10],
    [{ service_tier: 'flex', stream: true }, 'flex', 10],
  ])(
    'gets the service tier of %j as the objective, and vLLM gets its priority',
    async (fields, ...wanted) => {
      await (await worker.post({ model: 'cluster', prompt: 'Hi', max_tokens: 4, ...fields })).text();
      expect([openAi.headers[0]?.[OBJECTIVE], openAi.bodies[0]?.priority]).toEqual(wanted);
    },
  );

  test('lets no client set its own priority or fairness', async () => {
    const fields = { model: 'cluster', prompt: 'Hi', max_tokens: 4, priority: -5 };
    await (await worker.post(fields, { headers: { [FAIRNESS]: 'mine', [OBJECTIVE]: 'mine' } })).text();
    expect(openAi.bodies[0]).not.toHaveProperty('priority');
    expect([openAi.headers[0]?.[FAIRNESS], openAi.headers[0]?.[OBJECTIVE]]).toEqual([
      expect.stringMatching(/^[0-9a-f]{64}$/),
      'default',
    ]);
  });

  test('gets a cache salt per tenant without a setting', async () => {
    await completion(worker, KEY, { model: 'cluster' });
    expect(openAi.bodies[0]?.cache_salt).toMatch(/^[0-9a-f]{64}$/);
  });

  test('of an older version gets the names of the Gateway API', async () => {
    await completion(worker, KEY, { model: 'old-cluster', service_tier: 'flex' });
    expect(openAi.headers[0]).toMatchObject({
      'x-gateway-inference-fairness-id': expect.stringMatching(/^[0-9a-f]{64}$/),
      'x-gateway-inference-objective': 'flex',
    });
    expect(openAi.headers[0]).not.toHaveProperty(FAIRNESS);
    expect(openAi.bodies[0]).not.toHaveProperty('priority');
  });

  test.each([
    [429, 'ResourceExhausted', 'rejected-saturated'],
    [503, 'ServiceUnavailable', 'rejected-ttl-expired'],
  ])('that refuses with %i gives server_is_overloaded with its retry-after', async (status, kind, reason) => {
    openAi.script = (_, response) => {
      const headers = { 'retry-after': '7', 'x-llm-d-request-dropped-reason': reason };
      response.writeHead(status, headers).end(`inference error: ${kind} - the queue is full`);
    };
    const response = await worker.post({ model: 'cluster', prompt: 'Hi', max_tokens: 4 });
    const { error } = (await response.json()) as { error: { code: string; message: string } };
    expect([response.status, error.code, response.headers.get('retry-after')]).toEqual([
      503,
      'server_is_overloaded',
      '7',
    ]);
    expect(error.message).not.toContain('queue');
    await expect.poll(() => log.lines.join('\n')).toContain(reason);
  });
});

test('other servers get no headers of llm-d', async () => {
  await completion(worker, KEY, { model: 'foreign', service_tier: 'flex' });
  expect(Object.keys(openAi.headers[0] ?? {}).filter((name) => name.includes('inference'))).toEqual([]);
});
