import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { newDirectory } from '../../../../support/new-directory.ts';
import { randomFrom } from '../../../../support/random.ts';
import { contentsOf, nameOf, open } from './chunk-content.ts';

const KILLS = 12;

it('a process that is killed while it writes leaves right chunks only', async () => {
  const random = randomFrom(25);
  const directory = newDirectory();
  const leftovers = () => readdirSync(directory).filter((file) => file.endsWith('.tmp'));
  // Left by a process that died while it wrote.
  writeFileSync(join(directory, `${nameOf(0, 0)}.kv.1.tmp`), 'partial');
  let read = 0;
  for (let kill = 0; kill < KILLS; kill++) {
    const writer = spawn(process.execPath, [join(import.meta.dirname, 'writing-process.ts'), directory], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(writer.stdout, 'data');
    // The moment of the kill within a write.
    await sleep(20 * random());
    writer.kill('SIGKILL');
    await once(writer, 'exit');
    const faults: string[] = [];
    // Later, because the files of writers that died are removed when they are old.
    const chunks = open(directory, { now: () => Date.now() + 60_000, warn: (line) => faults.push(line) });
    await chunks.settled();
    for (let serial = 0; serial < 500; serial++) {
      if ((await contentsOf(chunks, nameOf(serial % 3, serial))) !== null) read++;
    }
    expect(faults).toEqual([]);
    expect(leftovers()).toEqual([]);
  }
  expect(read).toBeGreaterThanOrEqual(KILLS * 10);
});
