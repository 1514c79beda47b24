import { describe, expect, test } from 'vitest';
import { HubClient } from '../../../../origin/hub/fetch/hub-client.ts';
import { forEachTest } from '../../../support/for-tests.ts';
import { NAME, PullFixture } from './pull-fixture.ts';

const fixture = forEachTest(() => PullFixture.start());

describe('errors of the hub', () => {
  test('names the page to request access to a gated model, and HF_TOKEN if there is no token', async () => {
    fixture.offer({ gated: true });
    const message = `${NAME} is gated: request access at ${fixture.hub.endpoint}/${NAME}`;
    expect(await fixture.fault()).toBe(`${message} and set HF_TOKEN`);
    expect(await fixture.fault({}, { token: 'hf_secret' })).toBe(message);
  });

  test('shows the hub’s message for other statuses', async () => {
    fixture.offer();
    const headers = { 'x-error-message': 'This token may not read models.' };
    fixture.hub.faults.set('config.json', { statuses: [403], headers });
    expect(await fixture.fault()).toMatch(
      /^127\.0\.0\.1:\d+ answered 403 for config\.json: This token may not read models\.$/,
    );
    fixture.hub.faults.set('config.json', { statuses: [403] });
    expect(await fixture.fault()).toMatch(/^127\.0\.0\.1:\d+ answered 403 for config\.json$/);
  });

  test('names an unknown model, with and without a token', async () => {
    expect(await fixture.fault()).toBe(
      `${NAME} does not exist or is private; for a private model, set HF_TOKEN`,
    );
    expect(await fixture.fault({}, { token: 'hf_secret' })).toBe(`the hub rejects the token for ${NAME}`);
  });

  test('names an unknown revision', async () => {
    fixture.offer();
    expect(await fixture.fault({ revision: 'v9' })).toBe(`${NAME} has no revision v9`);
  });

  test('lists the existing variants if the requested one is missing', async () => {
    fixture.offer();
    expect(await fixture.fault({ variant: 'int4' })).toBe(
      `${NAME} has no variant int4; available: q4f16, fp32, q8`,
    );
  });

  test('rejects a repository without a model', async () => {
    fixture.offer({ files: { 'config.json': '{}', 'README.md': 'x' } });
    expect(await fixture.fault()).toBe(
      `${NAME} has no safetensors, no GGUF file and no ONNX decoder, only config.json, README.md`,
    );
  });

  test('sends the token to the hub and never to the storage server', async () => {
    fixture.offer();
    await fixture.run({}, { token: 'hf_secret' });
    const seen = (server: 'hub' | 'storage') =>
      fixture.hub.seen.filter((request) => request.server === server);
    expect(new Set(seen('hub').map(({ authorization }) => authorization))).toEqual(
      new Set(['Bearer hf_secret']),
    );
    expect(seen('storage').length).toBeGreaterThan(0);
    expect(seen('storage').filter(({ authorization }) => authorization !== undefined)).toEqual([]);
  });

  test('rejects a redirect from https to http', async () => {
    const settings = { endpoint: 'https://hub.example', token: 'hf_secret', cache: '' };
    const retries = { maxAttempts: 1, sleep: async () => {}, random: () => 0, onRetry: () => {} };
    const requests: string[] = [];
    const fetch = async (input: string | URL | Request) => {
      requests.push(String(input));
      return new Response(null, { status: 302, headers: { location: 'http://hub.example/x' } });
    };
    const client = new HubClient({ settings, fetch, retries, stallMs: 1000 });
    await expect(client.listing(NAME, 'main')).rejects.toThrow('hub.example redirects to an unsafe address');
    expect(requests).toHaveLength(1);
  });
});
