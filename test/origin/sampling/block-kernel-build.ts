import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { main } from 'assemblyscript/asc';

/** Builds origin/sampling/kernel/assembly/block-kernel.ts. Run by hand after a change of it: npm run build:kernel */

const kernel = fileURLToPath(new URL('../../../origin/sampling/kernel/', import.meta.url));

/** Compiles the block kernel; returns the WebAssembly module in base64. */
export async function buildBlockKernel(): Promise<string> {
  let module: Uint8Array | null = null;
  const { error, stderr } = await main(
    [
      'assembly/block-kernel.ts',
      ...['--baseDir', kernel, '--outFile', 'block-kernel.wasm', '-O3', '--noAssert', '--runtime', 'stub'],
      ...['--enable', 'simd', '--enable', 'threads', '--noExportMemory', '--importMemory'],
      ...['--sharedMemory', '--initialMemory', '1', '--maximumMemory', '65536'],
    ],
    {
      writeFile: (_name, contents) => {
        if (contents instanceof Uint8Array) module = contents;
      },
    },
  );
  if (error !== null || module === null) throw new Error(`the kernel does not compile: ${stderr}`);
  return Buffer.from(module).toString('base64');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const text = `/** Generated from assembly/block-kernel.ts by \`npm run build:kernel\`: a WebAssembly module in base64. */
export const KERNEL_MODULE =
  '${await buildBlockKernel()}';
`;
  writeFileSync(`${kernel}block-kernel-binary.ts`, text);
}
