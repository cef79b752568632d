// The own kernels are compiled once per instruction set, each time into a namespace of its own: `portable`, `avx2`,
// `avx512`. This header names the one that is being compiled. Whatever these files include is compiled with them, so
// none may leave a weak symbol behind (tests/tidy looks): functions that are inlined always or local to the file.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_CPU_CODE_H_
#define LOCKSTEP_WORKER_KERNELS_CPU_CODE_H_

#ifndef LS_CODE
#error "LS_CODE names the instruction set; worker/kernels/cpu/BUILD.bazel sets it"
#endif

#endif  // LOCKSTEP_WORKER_KERNELS_CPU_CODE_H_
