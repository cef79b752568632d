// Checks that LS_CODE is defined. The CPU device's own kernels are compiled once per instruction set, each time into a
// namespace of its own, LS_CODE: `portable`, `avx2` or `avx512`. Headers that these files include are compiled for that
// instruction set too, so they must not leave weak symbols, which the linker could use in code for older CPUs:
// functions are always_inline, static or in LS_CODE. tests/tidy checks this.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_CPU_CODE_H_
#define LOCKSTEP_WORKER_KERNELS_CPU_CODE_H_

#ifndef LS_CODE
#error "LS_CODE names the instruction set; worker/kernels/cpu/BUILD.bazel sets it"
#endif

#endif  // LOCKSTEP_WORKER_KERNELS_CPU_CODE_H_
