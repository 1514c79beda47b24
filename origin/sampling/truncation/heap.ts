/** Restores the heap order (smallest on top) below `parent` in the first `size` numbers. */
export function siftDown(heap: Float64Array, size: number, parent: number): void {
  const value = heap[parent]!;
  for (let child = 2 * parent + 1; child < size; child = 2 * parent + 1) {
    if (child + 1 < size && heap[child + 1]! < heap[child]!) child++;
    if (!(heap[child]! < value)) break;
    heap[parent] = heap[child]!;
    parent = child;
  }
  heap[parent] = value;
}

/** Brings the first `size` numbers into heap order; the smallest of them. */
export function heapify(heap: Float64Array, size: number): number {
  for (let parent = (size >>> 1) - 1; parent >= 0; parent--) siftDown(heap, size, parent);
  return heap[0]!;
}
