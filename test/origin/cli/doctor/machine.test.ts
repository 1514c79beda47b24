import type { RequestListener } from 'node:http';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import {
  checkClock,
  checkNode,
  checkPort,
  checkStateDirectory,
  checkVariables,
} from '../../../../origin/cli/doctor/machine.ts';
import { serve } from '../../../support/local-server.ts';
import { newDirectory } from '../../../support/new-directory.ts';
import { freePort } from '../../../support/system.ts';

async function portOf(answer: RequestListener): Promise<number> {
  const { port, stop } = await serve(answer);
  onTestFinished(stop);
  return port;
}

const json =
  (body: unknown, headers: Readonly<Record<string, string>> = {}): RequestListener =>
  (_, response) =>
    void response
      .writeHead(200, { 'content-type': 'application/json', ...headers })
      .end(JSON.stringify(body));

test('a Node without TypeScript fails', () => {
  expect(checkNode({ version: '24.1.0', typescript: true })).toEqual({
    status: 'ok',
    name: 'Node',
    text: '24.1.0',
  });
  expect(checkNode({ version: '20.20.2', typescript: false })).toMatchObject({
    status: 'fail',
    text: '20.20.2 cannot run TypeScript',
    advice: expect.stringContaining('Install Node 24'),
  });
});

test('an unknown CONTINUO_ variable fails and is named', () => {
  expect(checkVariables({ HOME: '/' })).toMatchObject({ status: 'ok', text: 'all defaults' });
  expect(checkVariables({ CONTINUO_SLOTS: '3' })).toMatchObject({ status: 'ok', text: '1 set' });
  expect(checkVariables({ CONTINUO_SLOT: '3' })).toMatchObject({
    status: 'fail',
    text: expect.stringContaining('CONTINUO_SLOT: there is no such variable'),
  });
});

test('a port of another program fails; a free one and one of Continuo are ok', async () => {
  const other = await portOf((_, response) => void response.end('hello'));
  expect(await checkPort('CONTINUO_PORT', other, '127.0.0.1')).toMatchObject({
    status: 'fail',
    text: 'another program uses it',
    advice: 'Set CONTINUO_PORT to a free port, or stop that program.',
  });
  const own = await portOf(json({ status: 'ok' }));
  expect(await checkPort('CONTINUO_PORT', own, '127.0.0.1')).toMatchObject({
    status: 'ok',
    text: 'Continuo is running here',
  });
  const foreign = await checkPort('CONTINUO_PORT', own, '192.0.2.1');
  expect(foreign).toMatchObject({ status: 'fail', text: 'cannot be used on 192.0.2.1 (EADDRNOTAVAIL)' });
  const free = await checkPort('CONTINUO_PORT', await freePort(), '127.0.0.1');
  expect(free).toMatchObject({ status: 'ok', text: 'free' });
});

test('a state directory below a file fails; one that does not exist yet is ok', () => {
  const directory = newDirectory();
  expect(checkStateDirectory(path.join(directory, 'new', 'deep')).status).toBe('ok');
  expect(checkStateDirectory('/dev/null/state')).toMatchObject({
    status: 'fail',
    text: expect.stringContaining('/dev/null/state cannot be used (ENOTDIR: not a directory, '),
  });
  expect(checkStateDirectory('/proc/state').status).toBe('fail');
});

test.each([
  [0, 'ok'],
  [20_000, 'warn'],
  [-20_000, 'warn'],
  [90_000, 'fail'],
  [-90_000, 'fail'],
])('an origin whose clock differs by %i ms: %s', async (skewMs, status) => {
  const now = Date.UTC(2026, 10, 23);
  const date = new Date(now + skewMs).toUTCString();
  const port = await portOf(json({ status: 'ready' }, { date }));
  const finding = await checkClock(`http://127.0.0.1:${port}`, () => now);
  expect(finding).toMatchObject({ status, text: expect.stringContaining(`${Math.abs(skewMs) / 1000} s`) });
});

test('the clock of an origin that does not answer is not checked', async () => {
  expect(await checkClock('http://127.0.0.1:1', Date.now)).toMatchObject({
    status: 'warn',
    text: 'not checked: no origin answers at http://127.0.0.1:1',
  });
});
