import koffi from 'koffi';

/**
 * Memory that threads share, as a buffer that says nothing of it; the two are the same bytes. Whoever reads what another
 * thread has written must have been told so by way of the shared one.
 */
export function ordinaryBuffer(memory: SharedArrayBuffer): ArrayBuffer {
  const buffer = koffi.view(koffi.address(new Uint8Array(memory)), memory.byteLength);
  // The view itself does not keep what it looks at.
  return Object.assign(buffer, { memory });
}
