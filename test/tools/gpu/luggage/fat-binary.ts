/** CUDA's fat binaries: containers of machine code for several architectures, one after the other. */

const MAGIC = 0xba55ed50;

/**
 * Overwrites the machine code of all architectures but one (90 = Hopper) by zeros, in place.
 * @throws Error if it is none
 */
export function keepArchitecture(section: Buffer, architecture: number): void {
  let kept = 0;
  for (let container = 0; container < section.length; ) {
    if (section.readUInt32LE(container) !== MAGIC)
      throw new Error(`no fat binary at byte ${container} of the section`);
    const first = container + section.readUInt16LE(container + 6);
    const end = first + Number(section.readBigUInt64LE(container + 8));
    for (let entry = first; entry < end; ) {
      const code = entry + section.readUInt32LE(entry + 4);
      const next = code + Number(section.readBigUInt64LE(entry + 8));
      if (section.readUInt32LE(entry + 28) === architecture) kept += next - code;
      else section.fill(0, code, next);
      entry = next;
    }
    container = end;
  }
  if (kept === 0) throw new Error(`there is no code for architecture ${architecture}`);
}
