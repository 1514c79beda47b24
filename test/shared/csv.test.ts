import { expect, test } from 'vitest';
import { csvText } from '../../shared/csv.ts';

test('fields with commas, quotes and line breaks are quoted, numbers stay, and no field begins like a formula', () => {
  const rows = [
    { model: 'a,b', key: 'say "hi"', tokens: -1 },
    { model: '=SUM(A1)', key: 'two\nlines', tokens: null },
  ];
  expect(csvText(['model', 'key', 'tokens'], rows)).toBe(
    'model,key,tokens\r\n"a,b","say ""hi""",-1\r\n\'=SUM(A1),"two\nlines",\r\n',
  );
});
