import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { reducedLibrary } from '../luggage/fat-binary.ts';
import { type Rival, SERVED_NAME } from './rival.ts';

/** vLLM and the Python packages that a machine with torch and transformers lacks, with their checksums. */
const PACKAGES = fileURLToPath(new URL('./vllm.txt', import.meta.url));
/** Of the machine. pip takes wheels with exactly one of these tags, or for all platforms. */
const PYTHON = '3.12';
const TAGS = ['manylinux_2_17_x86_64', 'manylinux_2_28_x86_64', 'manylinux_2_31_x86_64'];

/** Libraries with code for many architectures. That of attention has Hopper's only. */
const LIBRARIES = ['vllm/_C_stable_libtorch.abi3.so', 'vllm/_moe_C_stable_libtorch.abi3.so'];

/**
 * What a Llama in float16 does not use on Hopper: other attention, other numbers, the server in Rust. vLLM
 * starts without. The machine code that is cut is of other cards, and the PTX of quantized weights.
 */
const DROPPED = [
  'vllm/vllm_flash_attn/_vllm_fa2_C.abi3.so',
  'vllm/_flashmla_C.abi3.so',
  'vllm/_flashmla_extension_C.abi3.so',
  'vllm/_qutlass_C.abi3.so',
  'vllm/third_party/deep_gemm',
  'vllm/third_party/fmha_sm100',
  'vllm/vllm-rs',
  'xgrammar/lib',
  'mistral_common/data',
];

export const vllm: Rival = {
  assemble: async (directory, architecture) => {
    const platforms = TAGS.flatMap((tag) => ['--platform', tag]);
    const only = ['--no-deps', '--require-hashes', '--only-binary=:all:', '--python-version', PYTHON];
    const options = [...only, ...platforms, '--no-compile', '--target', directory];
    execFileSync('python3', ['-m', 'pip', 'install', '-qq', ...options, '-r', PACKAGES]);
    for (const name of DROPPED) rmSync(path.join(directory, name), { recursive: true });
    for (const name of LIBRARIES) {
      const file = path.join(directory, name);
      writeFileSync(file, reducedLibrary(file, { architecture, ptx: false }));
    }
  },
  server: ({ files, directory, contextLength, python }, port) => ({
    program: python,
    args: [
      ...['-m', 'vllm.entrypoints.cli.main', 'serve', directory, '--served-model-name', SERVED_NAME],
      ...['--load-format', 'dummy', '--dtype', 'float16', '--max-model-len', `${contextLength}`],
      // Prompts of the decode rates are those of the closed loops, and the origin computes all of them, too.
      ...['--no-enable-prefix-caching', '--host', '127.0.0.1', '--port', `${port}`],
    ],
    environment: {
      PYTHONPATH: files,
      HF_HUB_OFFLINE: '1',
      VLLM_NO_USAGE_STATS: '1',
      // FlashInfer is not there. It would draw top-k and top-p; the requests here are greedy.
      VLLM_USE_FLASHINFER_SAMPLER: '0',
    },
  }),
  notable: /attention backend|FlashAttention version|KV cache size|Maximum concurrency|took [\d.]+ s/,
};
