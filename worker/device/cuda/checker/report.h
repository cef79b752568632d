// The checker's reports: written to stderr, with source locations from addr2line if available; then the process aborts.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_REPORT_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_REPORT_H_

#include <cstdint>
#include <string>

namespace lockstep::device::cuda::checker {

// Encodes a source location in four bytes, 0 for none. REQUIRES: the address lies in this program or shared library.
int32_t PlaceOf(const void* return_address);
// "f(int*) at x.cc:12", with the functions into which it was inlined; "" for none.
std::string DescribePlace(int32_t place);

[[noreturn]] void Report(const std::string& what);

}  // namespace lockstep::device::cuda::checker

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_REPORT_H_
