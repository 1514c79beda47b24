import { describe, expect, test } from 'vitest';
import { forEachTest } from '../../support/for-tests.ts';
import { NAME, PullStage } from './pull-fixture.ts';

const stage = forEachTest(() => PullStage.start());

describe('refusals', () => {
  test('a gated model says where to ask, and for a token where there is none', async () => {
    stage.offer({ gated: true });
    const ask = `${NAME} is gated: ask for access at ${stage.hub.endpoint}/${NAME}`;
    expect(await stage.fault()).toBe(`${ask} and set HF_TOKEN`);
    expect(await stage.fault({}, { token: 'hf_secret' })).toBe(ask);
  });

  test('a refusal that is not about a gate is told in the hub’s own words', async () => {
    stage.offer();
    const headers = { 'x-error-message': 'This token may not read models.' };
    stage.hub.faults.set('config.json', { statuses: [403], headers });
    expect(await stage.fault()).toMatch(
      /^127\.0\.0\.1:\d+ answered 403 for config\.json: This token may not read models\.$/,
    );
    stage.hub.faults.set('config.json', { statuses: [403] });
    expect(await stage.fault()).toMatch(/^127\.0\.0\.1:\d+ answered 403 for config\.json$/);
  });

  test('an unknown model, with and without a token', async () => {
    expect(await stage.fault()).toBe(`${NAME} does not exist, or is private: then set HF_TOKEN`);
    expect(await stage.fault({}, { token: 'hf_secret' })).toBe(
      `the hub does not accept the token for ${NAME}`,
    );
  });

  test('an unknown revision', async () => {
    stage.offer();
    expect(await stage.fault({ revision: 'v9' })).toBe(`${NAME} has no revision v9`);
  });

  test('a missing variant names those that exist', async () => {
    stage.offer();
    expect(await stage.fault({ variant: 'int4' })).toBe(
      `${NAME} has no variant int4; there are: q4f16, fp32, q8`,
    );
  });

  test('a repository without an ONNX decoder', async () => {
    stage.offer({ files: { 'config.json': '{}', 'model.safetensors': 'x' } });
    expect(await stage.fault()).toBe(`${NAME} has no ONNX decoder`);
  });

  test('the token goes to the hub and never to the store', async () => {
    stage.offer();
    await stage.run({}, { token: 'hf_secret' });
    const seen = (server: string) => stage.hub.seen.filter((request) => request.server === server);
    expect(new Set(seen('hub').map(({ authorization }) => authorization))).toEqual(
      new Set(['Bearer hf_secret']),
    );
    expect(seen('store').length).toBeGreaterThan(0);
    expect(seen('store').filter(({ authorization }) => authorization !== undefined)).toEqual([]);
  });
});
