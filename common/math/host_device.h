// LS_HD marks an inline function that the host and kernels on a GPU both call, so that a formula is written once and
// gives the same bits wherever it runs. Such a function calls no libm, allocates nothing and throws nothing.
//
// Threading: immutable (a macro).
#ifndef LOCKSTEP_COMMON_MATH_HOST_DEVICE_H_
#define LOCKSTEP_COMMON_MATH_HOST_DEVICE_H_

#ifdef __CUDACC__
#define LS_HD __host__ __device__
#else
#define LS_HD
#endif

#endif  // LOCKSTEP_COMMON_MATH_HOST_DEVICE_H_
