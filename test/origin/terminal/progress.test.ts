import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Writable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { byteSize, createProgress } from '../../../origin/terminal/progress.ts';

function stream(isTTY: boolean) {
  const written: string[] = [];
  const sink = new Writable({
    write(chunk, _encoding, done) {
      written.push(String(chunk));
      done();
    },
  });
  return { written, stream: Object.assign(sink, { isTTY, columns: 100 }) };
}

describe('outside a terminal', () => {
  test('prints one line for a small file, without control characters', () => {
    const { written, stream: sink } = stream(false);
    const file = createProgress(sink).start('config.json', 2000);
    for (const bytes of [0, 1000, 2000]) file.update(bytes);
    file.stop();
    expect(written).toEqual(['config.json 2.00 kB\n']);
  });

  test('prints one line per 10 % of a large file, from the resumed byte on', () => {
    const { written, stream: sink } = stream(false);
    const file = createProgress(sink).start('model.onnx', 100e6);
    file.update(35e6);
    for (let bytes = 35e6; bytes <= 60e6; bytes += 1e6) file.update(bytes);
    expect(written).toEqual([
      'model.onnx 100 MB\n',
      'model.onnx 40 %\n',
      'model.onnx 50 %\n',
      'model.onnx 60 %\n',
    ]);
  });
});

describe('on a terminal', () => {
  test('shows file, size and the rate of this run in a bar and prints notes on a line of their own', () => {
    const { written, stream: sink } = stream(true);
    let milliseconds = 0;
    const progress = createProgress(sink, () => milliseconds);
    const file = progress.start('model.onnx', 100e6);
    file.update(40e6);
    milliseconds = 2000;
    file.update(100e6);
    progress.note('connection lost');
    file.stop();
    const text = written.join('');
    expect(text).toContain('model.onnx [');
    expect(text).toContain('100 % of 100 MB, 30.0 MB/s, ');
    expect(text).toContain('\r\u001b[Kconnection lost\n');
  });
});

test('leaves cursor and line wrapping unchanged if Ctrl-C ends the process while a bar runs', async () => {
  const module = new URL('../../../origin/terminal/progress.ts', import.meta.url).href;
  const script = `import { createProgress } from ${JSON.stringify(module)};
    const terminal = Object.assign(process.stdout, { isTTY: true, columns: 100 });
    createProgress(terminal).start('model.onnx', 100);
    setInterval(() => undefined, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script]);
  let written = '';
  for await (const piece of child.stdout.setEncoding('utf8')) {
    written += piece;
    if (!child.killed && written.includes('of 100 B')) child.kill('SIGINT');
  }
  expect(child.signalCode ?? (await once(child, 'exit'))[1]).toBe('SIGINT');
  // \u001b[?25l hides the cursor, \u001b[?7l disables wrapping.
  expect(written.lastIndexOf('\u001b[?25l')).toBeLessThanOrEqual(written.lastIndexOf('\u001b[?25h'));
  expect(written.lastIndexOf('\u001b[?7l')).toBeLessThanOrEqual(written.lastIndexOf('\u001b[?7h'));
});

test.each([
  [0, '0 B'],
  [999, '999 B'],
  [1000, '1.00 kB'],
  [9995, '10.0 kB'],
  [99_960, '100 kB'],
  [999_499, '999 kB'],
  [999_500, '1.00 MB'],
  [3_210_000_000, '3.21 GB'],
  [9e18, '9000 PB'],
])('formats %d bytes as %s', (bytes, text) => {
  expect(byteSize(bytes)).toBe(text);
});
