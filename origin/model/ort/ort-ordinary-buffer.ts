import koffi from 'koffi';

/**
 * Returns an ordinary ArrayBuffer over shared memory: the same bytes, accepted by APIs that refuse shared buffers. Threads
 * must synchronize through the shared one before reading.
 */
export function ordinaryBuffer(memory: SharedArrayBuffer): ArrayBuffer {
  const buffer = koffi.view(koffi.address(new Uint8Array(memory)), memory.byteLength);
  // The view does not keep the memory alive.
  return Object.assign(buffer, { memory });
}
