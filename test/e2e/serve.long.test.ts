import { existsSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { COMMIT, FakeHub } from '../origin/hub/fetch/fake-hub.ts';
import { weightsFiles } from '../origin/hub/prepare/weights-repository.ts';
import { forAllTests } from '../support/for-tests.ts';
import { newDirectory } from '../support/new-directory.ts';
import { exitOf, launch, startSystem } from '../support/system.ts';

const MAIN = path.resolve(import.meta.dirname, '../../origin/cli/main.ts');
const NAME = 'tiny-org/tiny-base';

const hub = forAllTests(FakeHub.start);
const home = newDirectory();

beforeAll(() => void hub.repositories.set(NAME, { files: weightsFiles() }));

// It must not win over the argument.
const MISSING = path.join(home, 'missing');
const environment = () => ({
  HF_ENDPOINT: hub.endpoint,
  HF_HOME: path.join(home, 'hf'),
  XDG_CACHE_HOME: path.join(home, 'cache'),
  CONTINUO_MODEL_DIR: MISSING,
});

/** Runs `continuo serve` and asks for one completion. Returns what it printed before it was ready. */
async function served(...options: string[]) {
  const system = await startSystem(environment(), null, [MAIN, 'serve', NAME, ...options]);
  try {
    const models = await system.request(`/v1/models/${NAME}`);
    const body = { model: NAME, prompt: 'abc', max_tokens: 8, temperature: 0 };
    const completion = await system.request('/v1/completions', body);
    const { usage } = (await completion.json()) as { usage: { completion_tokens: number } };
    return { model: await models.json(), tokens: usage.completion_tokens, output: system.output() };
  } finally {
    expect(await system.stop()).toBe(0);
  }
}

test('continuo serve goes from the name of a base model to a completion, and does nothing twice', async () => {
  const first = await served('--precision', 'fp32');
  expect(first.tokens).toBe(8);
  const source = `${NAME}@${COMMIT.slice(0, 12)}`;
  expect(first.model).toMatchObject({ id: NAME, root: NAME, precision: 'fp32', source, max_model_len: 512 });
  expect(first.output).toMatch(/^model\.safetensors \d+ kB$/m);
  expect(first.output).toMatch(/tiny-org\/tiny-base \(llama\) is built: [\d.]+ M parameters, fp32, /);
  expect(first.output).toMatch(/^checked: .*rows of a batch keep their bits$/m);
  const downloads = hub.downloads('model.safetensors').length;

  const second = await served('--precision', 'fp32');
  expect(second.tokens).toBe(8);
  expect(second.output).toContain('tiny-org/tiny-base is ready in ');
  expect(second.output).not.toMatch(/is built|^checked/m);
  expect(hub.downloads('model.safetensors')).toHaveLength(downloads);
  expect(existsSync(MISSING)).toBe(false);
});

test('continuo origin serves a base model by its name to an edge elsewhere, and fetches nothing without its secret', async () => {
  const requests = hub.seen.length;
  const refused = launch(environment(), [MAIN, 'origin', NAME]);
  expect(await exitOf(refused.child)).toBe(1);
  expect(refused.output()).toMatch(/^continuo: CONTINUO_ORIGIN_SECRET: must be set[^\n]*\n$/);
  expect(hub.seen).toHaveLength(requests);

  const variables = {
    CONTINUO_ORIGIN_SECRET: 'a secret of thirty-two characters',
    CONTINUO_ORIGIN_PORT: '0',
  };
  const { child, output } = launch({ ...environment(), ...variables }, [MAIN, 'origin', NAME]);
  await expect.poll(output).toContain(`"model":"${NAME}"`);
  await expect.poll(output).toContain('"msg":"loaded"');
  child.kill('SIGINT');
  expect(await exitOf(child)).toBe(0);
});
