import { InvalidArgumentError } from 'commander';
import { expect, test } from 'vitest';
import { aboveZero, address, directory, header, list, modelOrDirectory, oneOf, whole } from './arguments.ts';

const refuses = (read: (text: string) => unknown, texts: readonly string[]) => {
  for (const text of texts) expect(() => read(text), JSON.stringify(text)).toThrow(InvalidArgumentError);
};

test('accepts integers at or above the minimum, single and in lists', () => {
  expect(list(whole(1))('1, 2,16')).toEqual([1, 2, 16]);
  expect(whole(0)('0')).toBe(0);
  refuses(whole(1), ['0', '', 'abc', '1.5', '-1', '1e3', '9'.repeat(20)]);
  refuses(list(whole(1)), ['1,', '1,x', '']);
  expect(aboveZero('936.5')).toBe(936.5);
  refuses(aboveZero, ['0', '-1', 'fast', '']);
});

test('accepts only names that exist', () => {
  expect(list(oneOf(['engine', 'worker']))('worker,engine')).toEqual(['worker', 'engine']);
  refuses(list(oneOf(['engine', 'worker'])), ['engine,foo', '']);
  expect(modelOrDirectory(['built-in'])('built-in')).toBe('built-in');
  expect(modelOrDirectory([])(import.meta.dirname)).toBe(import.meta.dirname);
  refuses(modelOrDirectory(['built-in']), ['nope', '']);
});

test('accepts only directories that exist', () => {
  expect(directory(import.meta.dirname)).toBe(import.meta.dirname);
  refuses(directory, ['nope', '', import.meta.filename]);
});

test('removes the trailing slash of an address', () => {
  expect(address('http://127.0.0.1:8080/v1/')).toBe('http://127.0.0.1:8080/v1');
  expect(address('https://api.example.com/v1')).toBe('https://api.example.com/v1');
  refuses(address, ['nope', 'localhost:8080', 'ftp://host/v1', '']);
});

test('collects headers, whose values may hold colons', () => {
  const one = header('x-host: http://127.0.0.1:9300/v1');
  expect(header('authorization:Bearer none', one)).toEqual({
    'x-host': 'http://127.0.0.1:9300/v1',
    authorization: 'Bearer none',
  });
  refuses(header, ['nope', 'name:', 'name: ', ': value', 'two words: value', '']);
});
