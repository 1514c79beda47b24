import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { newDirectory } from '../support/new-directory.ts';
import { exitOf, freePort, launch, type System, startSystem } from '../support/system.ts';
import { payloadsOf } from '../worker/support/sse.ts';

/** Returns the pids of all processes whose command line or environment names the directory (Linux only). */
function processesNaming(directory: string): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.map(Number).filter((pid) => {
    try {
      return (
        pid !== process.pid &&
        (readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(directory) ||
          readFileSync(`/proc/${pid}/environ`, 'utf8').includes(directory))
      );
    } catch {
      return false;
    }
  });
}

const isWorkerd = (pid: number): boolean => readFileSync(`/proc/${pid}/comm`, 'utf8').trim() === 'workerd';

/** Parses URL, headers and body of the printed curl line. */
function readCurl(banner: string) {
  const url = /curl (\S+)/.exec(banner)?.[1] ?? '';
  const headers = Object.fromEntries(
    [...banner.matchAll(/-H "([^:]+): ([^"]+)"/g)].map(([, k, v]) => [k, v]),
  );
  return { url, headers: headers as Record<string, string>, body: /-d '([^']+)'/.exec(banner)?.[1] ?? '' };
}

describe('npm start', () => {
  let system: System;
  const directory = newDirectory();

  beforeAll(async () => {
    // What a start that was cut off has left. The tests use the new key.
    await writeFile(path.join(directory, 'development.json'), '{"apiKey": "sk-', { mode: 0o600 });
    // A proxy that does not answer: what stays on this machine is not for it.
    system = await startSystem({ NODE_USE_ENV_PROXY: '1', HTTP_PROXY: 'http://127.0.0.1:1' }, directory);
  });
  afterAll(async () => {
    await system.stop();
  });

  const complete = (fields: Record<string, unknown>, headers: Record<string, string> = {}) =>
    system.request('/v1/completions', { model: 'default', ...fields }, headers);

  test('prints the address of the page first, with a code in its fragment that is worth the key once', async () => {
    const [, page] = /^ {2}page {6}(\S+)/m.exec(system.banner)!;
    expect(/https?:\S+/.exec(system.banner)?.[0]).toBe(page);
    expect(page).not.toContain(system.apiKey);
    const answer = await fetch(page!, { headers: { accept: 'text/html' } });
    expect(await answer.text()).toContain('<div id="app">');
    const [, code] = /\/#code=(\S{20,})$/.exec(page!)!;
    const exchange = (body: unknown) =>
      fetch(`${system.url}/page-key`, { method: 'POST', body: JSON.stringify(body) });
    for (const wrong of [{ code: `${code}x` }, { code: [code] }, {}, null])
      expect((await exchange(wrong)).status).toBe(404);
    const first = await exchange({ code });
    expect([first.headers.get('cache-control'), await first.json()]).toEqual([
      'no-store',
      { key: system.apiKey },
    ]);
    const second = await exchange({ code });
    expect([second.status, await second.json()]).toMatchObject([
      404,
      { error: { message: expect.stringContaining('used before') } },
    ]);
  });

  test('replaces an incomplete state file, and prints a curl line that returns a completion', async () => {
    expect(() => JSON.parse(readFileSync(path.join(directory, 'development.json'), 'utf8'))).not.toThrow();
    const { url, headers, body } = readCurl(system.banner);
    const generated = async () => {
      const response = await fetch(url, { method: 'POST', headers, body });
      expect(response.status).toBe(200);
      const { choices, usage } = (await response.json()) as {
        choices: { text: string }[];
        usage: { completion_tokens: number };
      };
      return [choices[0]?.text.length ?? 0, usage.completion_tokens];
    };
    // A sampled text may end with its first token, so try several.
    await expect.poll(generated).toSatisfy(([characters, tokens]) => characters > 20 && tokens > 8);
  });

  /** Reads a long stream to its end, and calls `interrupt` at its first bytes. */
  async function expectErrorEvent(interrupt: () => void): Promise<void> {
    // More tokens than it generates before it is interrupted.
    const endless = { max_tokens: 1900, n: 8, ignore_eos: true };
    const response = await complete({ prompt: 'Once upon a time', ...endless, stream: true });
    expect(response.status).toBe(200);
    let text = '';
    const decoder = new TextDecoder();
    for await (const bytes of response.body as ReadableStream<Uint8Array>) {
      if (text === '') interrupt();
      text += decoder.decode(bytes, { stream: true });
    }
    expect(payloadsOf(text).at(-1)).toMatchObject({ error: { code: 'upstream_error' } });
  }

  test('an origin killed during a stream gives an error event and [DONE], and requests work again after its restart', async () => {
    await expectErrorEvent(() => process.kill(system.originPid(), 'SIGKILL'));
    const again = async () => (await complete({ prompt: 'Once upon a time', max_tokens: 4 })).status;
    await expect.poll(again).toBe(200);
  });

  test('restarts workerd with its database', async () => {
    const usage = () => system.request('/admin/v1/tenants');
    const before = await (await usage()).json();
    const [workerd] = processesNaming(directory).filter(isWorkerd);
    process.kill(workerd!, 'SIGKILL');
    const after = () => usage().then((response) => response.json());
    await expect.poll(() => after().catch(() => null)).toEqual(before);
    const again = async () => (await complete({ prompt: 'Hello', max_tokens: 2 })).status;
    await expect.poll(again).toBe(200);
  });

  test('the admin command reads the server address and key from the same settings', () => {
    const { CONTINUO_URL: _, CONTINUO_ADMIN_KEY: __, ...environment } = process.env;
    const proxy = { NODE_USE_ENV_PROXY: '1', HTTP_PROXY: 'http://127.0.0.1:1' };
    const settings = { CONTINUO_PORT: new URL(system.url).port, CONTINUO_STATE_DIR: directory, ...proxy };
    const main = path.resolve(import.meta.dirname, '../../origin/cli/main.ts');
    const answer = execFileSync(process.execPath, [main, '--json', 'tenants', 'list'], {
      env: { ...environment, ...settings },
      encoding: 'utf8',
    });
    expect(JSON.parse(answer)).toEqual([expect.objectContaining({ id: 'operator' })]);
  });

  test('the address serves only the Worker, no database explorer', async () => {
    for (const path of [
      '/cdn-cgi/explorer',
      '/cdn-cgi/explorer/api/d1/database',
      '/cdn-cgi/handler/scheduled',
    ]) {
      const response = await fetch(system.url + path);
      expect(response.status, path).toBe(404);
      expect(await response.json(), path).toMatchObject({ error: { code: 'unknown_url' } });
    }
  });

  test('no log holds prompt, completion or key', async () => {
    const marker = 'Zanzibar porcupine';
    const response = await complete({
      prompt: `${marker} said that`,
      max_tokens: 24,
      temperature: 0,
      echo: true,
    });
    const completion = (await response.json()) as { choices: { text: string }[] };
    const generated = completion.choices[0]?.text.slice(marker.length + 10) ?? '';
    expect(generated.length).toBeGreaterThan(10);
    const everything =
      system.output().slice(system.banner.length) + system.log('origin') + system.log('worker');
    expect(everything).toContain('"level"');
    for (const secret of [marker, generated.trim().slice(0, 20), system.apiKey, system.apiKey.slice(16)]) {
      expect(everything).not.toContain(secret);
    }
  });

  test('stored request data is readable only by its owner', async () => {
    const body = { prompt: 'Private', max_tokens: 2, echo: true };
    expect((await complete(body, { 'idempotency-key': 'private' })).status).toBe(200);
    const kept = readdirSync(directory, { recursive: true, encoding: 'utf8' });
    expect(kept.filter((name) => name.endsWith('.sqlite')).length).toBeGreaterThan(3);
    // SQLite creates and removes its journals.
    const modeOf = (name: string) =>
      statSync(path.join(directory, name), { throwIfNoEntry: false })?.mode ?? 0;
    const open = kept.filter((name) => (modeOf(name) & 0o077) !== 0);
    expect(open).toEqual([]);
  });

  test('prints the curl line only after the model is loaded', async () => {
    const state = newDirectory();
    const url = `http://127.0.0.1:${await freePort()}`;
    // The origin reads this file once it listens, and waits until the test writes it.
    const models = path.join(newDirectory(), 'models.json');
    execFileSync('mkfifo', [models]);
    const { child, output } = launch({
      CONTINUO_STATE_DIR: state,
      CONTINUO_PORT: new URL(url).port,
      CONTINUO_ORIGIN_PORT: String(await freePort()),
      CONTINUO_MODELS_FILE: models,
    });
    onTestFinished(() => void child.kill('SIGINT'));
    const log = () => readFileSync(path.join(state, 'origin.log'), { encoding: 'utf8', flag: 'a+' });
    await expect.poll(log).toContain('"msg":"listening"');
    await expect.poll(() => fetch(`${url}/health`).catch(() => null)).not.toBeNull();
    await sleep(300);
    expect(output()).toBe('');
    const mini = { name: 'mini', directory: path.resolve('origin/models/continuo-mini') };
    await writeFile(models, JSON.stringify({ models: [mini] }));
    await expect.poll(output).toContain('curl');
    // The line in the log may be written later than the answer that the command has waited for.
    await expect.poll(log).toContain('"msg":"loaded"');
    child.kill('SIGINT');
    expect(await exitOf(child)).toBe(0);
  });

  test('a port in use is one clear line and exit code 1', async () => {
    const port = Number(new URL(system.url).port);
    const { child, output } = launch({
      CONTINUO_STATE_DIR: newDirectory(),
      CONTINUO_PORT: String(port),
      CONTINUO_ORIGIN_PORT: String(await freePort()),
    });
    expect(await exitOf(child)).toBe(1);
    expect(output().trim()).toBe(
      `continuo: Port ${port} on 127.0.0.1 is in use; set CONTINUO_PORT to a free one.`,
    );
  });

  test('a second start on the same state directory names the process that holds it', async () => {
    const { child, output } = launch({
      CONTINUO_STATE_DIR: directory,
      CONTINUO_PORT: String(await freePort()),
      CONTINUO_ORIGIN_PORT: String(await freePort()),
    });
    expect(await exitOf(child)).toBe(1);
    expect(output()).toMatch(`The state directory ${directory} is in use by process ${system.launcher.pid}.`);
  });

  test('Ctrl-C ends streams with an error event and [DONE], ends every process and frees the ports, and the key survives a restart', async () => {
    const before = system;
    expect(processesNaming(directory).length).toBeGreaterThanOrEqual(3);
    let stopped: Promise<number | null> | null = null;
    await expectErrorEvent(() => {
      stopped = before.stop();
    });
    expect(await stopped).toBe(0);
    // Killed processes may take a moment to disappear.
    await expect.poll(() => processesNaming(directory)).toEqual([]);
    const port = Number(new URL(before.url).port);
    await new Promise<void>((resolve, reject) => {
      const server = createServer().once('error', reject);
      server.listen(port, '127.0.0.1', () => server.close(() => resolve()));
    });
    system = await startSystem({}, directory);
    expect(system.apiKey).toBe(before.apiKey);
    expect((await complete({ prompt: 'Hello', max_tokens: 2 })).status).toBe(200);
  });

  test('all processes end when the launcher is killed, and the next start works', async () => {
    system.launcher.kill('SIGKILL');
    await exitOf(system.launcher);
    await expect.poll(() => processesNaming(directory)).toEqual([]);
    system = await startSystem({}, directory);
    expect((await complete({ prompt: 'Hello', max_tokens: 2 })).status).toBe(200);
  });
});
