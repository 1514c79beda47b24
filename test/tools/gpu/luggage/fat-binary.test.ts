import { expect, it } from 'vitest';
import { keepArchitecture } from './fat-binary.ts';

function entry(architecture: number, code: string): Buffer {
  const header = Buffer.alloc(64);
  header.writeUInt16LE(2, 0);
  header.writeUInt32LE(64, 4);
  header.writeBigUInt64LE(BigInt(code.length), 8);
  header.writeUInt32LE(architecture, 28);
  return Buffer.concat([header, Buffer.from(code)]);
}

function container(...entries: readonly Buffer[]): Buffer {
  const header = Buffer.alloc(16);
  header.writeUInt32LE(0xba55ed50, 0);
  header.writeUInt16LE(16, 6);
  header.writeBigUInt64LE(BigInt(Buffer.concat(entries).length), 8);
  return Buffer.concat([header, ...entries]);
}

it('keeps the code of one architecture and all headers of a fat binary', () => {
  const section = Buffer.concat([
    container(entry(80, 'ampere--'), entry(90, 'hopper--')),
    container(entry(90, 'more'), entry(120, 'blackwell')),
  ]);
  keepArchitecture(section, 90);
  const expected = Buffer.concat([
    container(entry(80, '\0'.repeat(8)), entry(90, 'hopper--')),
    container(entry(90, 'more'), entry(120, '\0'.repeat(9))),
  ]);
  expect(section.equals(expected)).toBe(true);
});

it('refuses an architecture without code, and what is no fat binary', () => {
  expect(() => keepArchitecture(container(entry(80, 'code')), 90)).toThrow('no code for architecture 90');
  expect(() => keepArchitecture(Buffer.alloc(64), 90)).toThrow('no fat binary at byte 0');
});
