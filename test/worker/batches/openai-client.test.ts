import OpenAI, { toFile } from 'openai';
import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { KEY } from '../support/worker.ts';
import { workerForTests } from '../support/worker-for-tests.ts';
import { lineOf } from './batch-client.ts';

const { worker } = workerForTests();

test('openai-node uploads, runs, lists, downloads, cancels and deletes', async () => {
  const client = new OpenAI({ baseURL: `${worker.url}/v1`, apiKey: KEY });
  const content = `${lineOf('a')}\n${lineOf('b')}\n`;
  const file = await client.files.create({
    file: await toFile(Buffer.from(content), 'in.jsonl'),
    purpose: 'batch',
  });
  expect(await (await client.files.content(file.id)).text()).toBe(content);
  const order = { input_file_id: file.id, endpoint: '/v1/completions', completion_window: '24h' } as const;
  const { id } = await client.batches.create(order);
  const batch = await eventually(
    () => client.batches.retrieve(id),
    ({ status }) => status === 'completed',
  );
  const output = await (await client.files.content(batch.output_file_id!)).text();
  expect(output.trim().split('\n')).toHaveLength(2);
  const listed: string[] = [];
  for await (const one of client.batches.list({ limit: 1 })) listed.push(one.id);
  expect(listed).toEqual([id]);
  const files: string[] = [];
  for await (const one of client.files.list({ limit: 1 })) files.push(one.id);
  expect(files.toSorted()).toEqual([file.id, batch.output_file_id].toSorted());
  await expect(client.batches.cancel(id)).rejects.toMatchObject({ status: 409 });
  expect(await client.files.delete(file.id)).toEqual({ id: file.id, object: 'file', deleted: true });
  await expect(client.files.retrieve(file.id)).rejects.toBeInstanceOf(OpenAI.NotFoundError);
});
