import { expect, test } from 'vitest';
import { csvResponse } from '../../../worker/account/csv.ts';

test('fields with commas, quotes and line breaks are quoted, numbers stay, and no field begins like a formula', async () => {
  const rows = [
    { model: 'a,b', key: 'say "hi"', tokens: -1 },
    { model: '=SUM(A1)', key: 'two\nlines', tokens: null },
  ];
  expect(await csvResponse(['model', 'key', 'tokens'], rows).text()).toBe(
    'model,key,tokens\r\n"a,b","say ""hi""",-1\r\n\'=SUM(A1),"two\nlines",\r\n',
  );
});
