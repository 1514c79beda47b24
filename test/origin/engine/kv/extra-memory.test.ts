import { expect, it } from 'vitest';
import { ExtraMemory } from '../../../../origin/engine/kv/extra-memory.ts';
import { MemoryPool } from '../../../../origin/engine/kv/prefix-memory.ts';

interface Chunk {
  readonly name: string;
  state: object | null;
}

function memoryFor(room: number) {
  const memory = new ExtraMemory<'state', object>('state', new MemoryPool(room, () => ({})));
  const chunks: Chunk[] = [];
  const keep = (name: string, worth?: number): Chunk => {
    const chunk = { name, state: null };
    chunks.push(chunk);
    memory.keep(chunk, () => {}, worth);
    return chunk;
  };
  return { memory, keep, kept: () => chunks.flatMap(({ name, state }) => (state === null ? [] : name)) };
}

it('gives away the least recently used of equal worth', () => {
  const { memory, keep, kept } = memoryFor(2);
  const first = keep('first');
  keep('second');
  memory.touch(first);
  keep('third');
  expect(kept()).toEqual(['first', 'third']);
});

it('gives away what saves least, counts each use, and forgets old uses', () => {
  const { memory, keep, kept } = memoryFor(2);
  keep('large', 100);
  const used = keep('used', 60);
  memory.touch(used);
  keep('small', 10);
  expect(kept()).toEqual(['used', 'small']);
  keep('next', 30);
  expect(kept()).toEqual(['used', 'next']);
  keep('later', 30);
  expect(kept()).toEqual(['next', 'later']);
});
