import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Writable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { byteSize } from '../../../origin/hub/byte-size.ts';
import { createProgress } from '../../../origin/hub/progress.ts';

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

describe('away from a terminal', () => {
  test('a small file is one line, without control characters', () => {
    const { written, stream: sink } = stream(false);
    const file = createProgress(sink).start('config.json', 2000);
    for (const bytes of [0, 1000, 2000]) file.update(bytes);
    file.stop();
    expect(written).toEqual(['config.json 2.00 kB\n']);
  });

  test('a large file is one line per tenth, from where it goes on', () => {
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
  test('a bar tells the file and its size, and a note starts on a line of its own', () => {
    const { written, stream: sink } = stream(true);
    const progress = createProgress(sink);
    const file = progress.start('model.onnx', 100e6);
    file.update(100e6);
    progress.note('connection lost');
    file.stop();
    const text = written.join('');
    expect(text).toContain('model.onnx [');
    expect(text).toContain('100 % of 100 MB');
    expect(text).toContain('\r\u001b[Kconnection lost\n');
  });
});

test('whoever ends the process while a bar runs has the cursor and wrapped lines back', async () => {
  const module = new URL('../../../origin/hub/progress.ts', import.meta.url).href;
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
  expect(written.lastIndexOf('\u001b[?25h')).toBeGreaterThan(written.lastIndexOf('\u001b[?25l'));
  expect(written.lastIndexOf('\u001b[?7h')).toBeGreaterThan(written.lastIndexOf('\u001b[?7l'));
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
])('%d bytes are %s', (bytes, text) => {
  expect(byteSize(bytes)).toBe(text);
});
