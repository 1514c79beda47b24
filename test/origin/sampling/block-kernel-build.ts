import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { main } from 'assemblyscript/asc';

/** Builds the WebAssembly kernels. Run by hand after a change of one: npm run build:kernel */

const origin = fileURLToPath(new URL('../../../origin/', import.meta.url));

interface Kernel {
  /** Folder of the module; its source is in assembly/. */
  readonly folder: string;
  readonly name: string;
  readonly options: readonly string[];
}

export const BLOCK_KERNEL: Kernel = {
  folder: `${origin}sampling/kernel/`,
  name: 'block-kernel',
  options: [
    ...['--enable', 'threads', '--noExportMemory', '--importMemory'],
    ...['--sharedMemory', '--initialMemory', '1', '--maximumMemory', '65536'],
  ],
};

export const QUANTIZE_KERNEL: Kernel = {
  folder: `${origin}export/precision/`,
  name: 'quantize-kernel',
  options: ['--initialMemory', '1'],
};

/** Compiles a kernel; returns the WebAssembly module in base64. */
export async function buildKernel({ folder, name, options }: Kernel): Promise<string> {
  let module: Uint8Array | null = null;
  const { error, stderr } = await main(
    [
      `assembly/${name}.ts`,
      ...['--baseDir', folder, '--outFile', `${name}.wasm`, '-O3', '--noAssert', '--runtime', 'stub'],
      ...['--enable', 'simd', ...options],
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
  for (const kernel of [BLOCK_KERNEL, QUANTIZE_KERNEL]) {
    const { folder, name } = kernel;
    const text = `/** Generated from assembly/${name}.ts by \`npm run build:kernel\`: a WebAssembly module in base64. */
export const KERNEL_MODULE =
  '${await buildKernel(kernel)}';
`;
    writeFileSync(`${folder}${name}-binary.ts`, text);
  }
}
