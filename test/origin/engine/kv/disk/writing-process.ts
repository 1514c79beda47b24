import { argv } from 'node:process';
import { setImmediate } from 'node:timers/promises';
import { contentOf, nameOf, open } from './chunk-content.ts';

/** Writes chunks to the directory of the first argument, and replaces them, until the process is killed. */

const chunks = open(argv[2]!, { id: `${process.pid}`, queueBytes: 4000 });
let isReported = false;
for (let serial = 0; ; serial++) {
  const name = nameOf(serial % 3, serial % 500);
  const contents = Math.floor(serial / 500);
  chunks.write(name, contents, contentOf(name, contents));
  if (serial % 4 === 0) await setImmediate();
  if (isReported || chunks.status.writtenChunks < 10) continue;
  isReported = true;
  process.stdout.write('10 are written\n');
}
