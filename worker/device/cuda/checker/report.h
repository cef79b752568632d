// How the checker says what it found: on stderr, with places of the code as far as addr2line knows them. Then the
// process ends.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_REPORT_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_REPORT_H_

#include <cstdint>
#include <string>

namespace lockstep::device::cuda::checker {

// A place of the code in four bytes, 0 for none. REQUIRES: it is in this program or shared library.
int32_t PlaceOf(const void* return_address);
// "f(int*) at x.cc:12", with the functions that it was inlined into; "" for none.
std::string DescribePlace(int32_t place);

[[noreturn]] void Report(const std::string& what);

}  // namespace lockstep::device::cuda::checker

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_REPORT_H_
