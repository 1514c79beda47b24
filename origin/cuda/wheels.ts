import type { FileIdentity } from '../hub/fetch/listing.ts';
import { CUDA_PROVIDER } from '../model/ort/cuda-folder.ts';

/** A file of a Python package and the libraries to take from it. */
export interface Wheel extends FileIdentity {
  readonly project: string;
  readonly file: string;
  readonly libraries: readonly string[];
}

/**
 * ONNX Runtime's CUDA provider and the libraries that it names as NEEDED. CUDA 13.0 runs with every driver
 * from version 580 on. The provider comes last, so that a folder with the provider is complete.
 */
export const CUDA_WHEELS: readonly Wheel[] = [
  {
    project: 'nvidia-cuda-runtime',
    file: 'nvidia_cuda_runtime-13.0.96-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl',
    size: 2_243_632,
    checksum: '7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548',
    libraries: ['libcudart.so.13'],
  },
  {
    project: 'nvidia-curand',
    file: 'nvidia_curand-10.4.0.35-py3-none-manylinux_2_27_x86_64.whl',
    size: 59_544_258,
    checksum: '1aee33a5da6e1db083fe2b90082def8915f30f3248d5896bcec36a579d941bfc',
    libraries: ['libcurand.so.10'],
  },
  {
    project: 'nvidia-cublas',
    file: 'nvidia_cublas-13.1.0.3-py3-none-manylinux_2_27_x86_64.whl',
    size: 423_133_236,
    checksum: 'ee8722c1f0145ab246bccb9e452153b5e0515fd094c3678df50b2a0888b8b171',
    libraries: ['libcublasLt.so.13', 'libcublas.so.13'],
  },
  {
    project: 'onnxruntime-gpu',
    file: 'onnxruntime_gpu-1.30.0-cp311-cp311-manylinux_2_28_x86_64.whl',
    size: 246_658_419,
    checksum: '4fbf0c5d7b5fb99266c2e8a802e3e64af68bdc383e0f3c7349b985f1087eedaa',
    libraries: ['libonnxruntime_providers_shared.so', CUDA_PROVIDER],
  },
];

/** cuDNN, and NVRTC for its kernels. The provider opens it only for operators that need it. */
export const CUDNN_WHEELS: readonly Wheel[] = [
  {
    project: 'nvidia-cuda-nvrtc',
    file: 'nvidia_cuda_nvrtc-13.0.88-py3-none-manylinux2010_x86_64.manylinux_2_12_x86_64.whl',
    size: 90_215_200,
    checksum: 'ad9b6d2ead2435f11cbb6868809d2adeeee302e9bb94bcf0539c7a40d80e8575',
    libraries: ['libnvrtc-builtins.so.13.0', 'libnvrtc.so.13'],
  },
  {
    project: 'nvidia-cudnn-cu13',
    file: 'nvidia_cudnn_cu13-9.24.1.1-py3-none-manylinux_2_27_x86_64.whl',
    size: 553_126_434,
    checksum: '06df9d1cc37d7c151f9f218a47dba0fb0223d4725115961ec02c070a081b4c1b',
    libraries: [
      'libcudnn_graph.so.9',
      'libcudnn_ops.so.9',
      'libcudnn_cnn.so.9',
      'libcudnn_adv.so.9',
      'libcudnn_ext.so.9',
      'libcudnn_heuristic.so.9',
      'libcudnn_engines_precompiled.so.9',
      'libcudnn_engines_runtime_compiled.so.9',
      'libcudnn_engines_tensor_ir.so.9',
      'libcudnn.so.9',
    ],
  },
];
