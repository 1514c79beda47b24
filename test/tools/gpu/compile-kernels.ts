import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import koffi from 'koffi';

/**
 * Compiles the CUDA kernels to PTX. Run by hand after a change of one: npm run build:cuda -- FILE, with the
 * library libnvrtc.so.13 of CUDA, for example that of the package nvidia-cuda-nvrtc. It needs no card.
 */

const kernels = fileURLToPath(new URL('../../../origin/model/runner/device/kernels/', import.meta.url));

/** From Turing on; the driver compiles for later cards. */
const OPTIONS = ['--gpu-architecture=compute_75', '--std=c++17'];

/** The first line of the compiled file, which says what it was compiled from. */
export function originOf(source: string): string {
  return `// SHA-256 of draw-tokens.cu: ${createHash('sha256').update(source).digest('hex')}\n`;
}

function compile(library: string, source: string): string {
  const nvrtc = koffi.load(library);
  const call = (name: string, types: readonly string[], ...values: readonly unknown[]) => {
    const result: number = nvrtc.func(name, 'int', [...types])(...values);
    return result;
  };
  const program = new BigUint64Array(1);
  const created = ['void *', 'str', 'str', 'int', 'void *', 'void *'];
  call('nvrtcCreateProgram', created, program, source, 'draw-tokens.cu', 0, null, null);
  const compiled = call(
    'nvrtcCompileProgram',
    ['void *', 'int', 'str *'],
    program[0],
    OPTIONS.length,
    OPTIONS,
  );
  const text = (what: 'ProgramLog' | 'PTX') => {
    const size = new BigUint64Array(1);
    call(`nvrtcGet${what}Size`, ['void *', 'void *'], program[0], size);
    const bytes = Buffer.alloc(Number(size[0]));
    call(`nvrtcGet${what}`, ['void *', 'void *'], program[0], bytes);
    return bytes.toString('utf8', 0, bytes.indexOf(0));
  };
  if (compiled !== 0) throw new Error(text('ProgramLog'));
  return text('PTX');
}

if (import.meta.main) {
  const [, , library = 'libnvrtc.so.13'] = process.argv;
  const source = readFileSync(`${kernels}draw-tokens.cu`, 'utf8');
  writeFileSync(`${kernels}draw-tokens.ptx`, `${originOf(source)}${compile(library, source)}`);
}
