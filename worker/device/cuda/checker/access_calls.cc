// The functions that gcc calls in sources that it compiles with HOST_CHECKS (bazel/cuda_library.bzl): for each load and
// store, which are no concern of theirs outside of a kernel's thread, and where an index or an address does not fit its
// type, anywhere.
#ifdef LS_HOST_CHECKS

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/device/cuda/checker/kernel_checks.h"
#include "worker/device/cuda/checker/report.h"

namespace lockstep::device::cuda::checker {
namespace {

inline void Touch(const void* memory, size_t bytes, bool write, bool aligned, const void* return_address) {
  KernelChecks* const kernel = running;
  if (kernel == nullptr) return;
  running = nullptr;  // what is called from here may be compiled with such calls, too
  kernel->Touch(reinterpret_cast<uintptr_t>(memory), bytes, write, aligned, return_address);
  running = kernel;
}

// What the compiler leaves behind for reports: libubsan's structures, as far as they are used here.
struct Place {
  const char* file;
  uint32_t line;
  uint32_t column;
};
struct WrongType {
  Place place;
  const void* type;
  uint8_t alignment_bits;
  uint8_t kind;
};

[[noreturn]] void ReportAt(const KernelChecks* kernel, const Place& place, const std::string& what) {
  Report(absl::StrCat(kernel == nullptr ? "" : kernel->DescribeThread() + ": ", what, ", at ", place.file, ":",
                      place.line));
}

}  // namespace
}  // namespace lockstep::device::cuda::checker

using lockstep::device::cuda::checker::Place;
using lockstep::device::cuda::checker::ReportAt;
using lockstep::device::cuda::checker::running;
using lockstep::device::cuda::checker::Touch;
using lockstep::device::cuda::checker::WrongType;

// NOLINTBEGIN: the compiler gives the names.
#define LS_ACCESS(name, bytes, write, aligned) \
  void name(void* memory) { Touch(memory, bytes, write, aligned, __builtin_return_address(0)); }
#define LS_ACCESSES(bytes)                                     \
  LS_ACCESS(__tsan_read##bytes, bytes, false, true)            \
  LS_ACCESS(__tsan_write##bytes, bytes, true, true)            \
  LS_ACCESS(__tsan_unaligned_read##bytes, bytes, false, false) \
  LS_ACCESS(__tsan_unaligned_write##bytes, bytes, true, false)

// Kernels have no atomics; what the host does with its own stays what it is.
#define LS_ATOMICS(bits, T)                                                                                         \
  T __tsan_atomic##bits##_load(const volatile T* at, int) { return __atomic_load_n(at, __ATOMIC_SEQ_CST); }         \
  void __tsan_atomic##bits##_store(volatile T* at, T value, int) { __atomic_store_n(at, value, __ATOMIC_SEQ_CST); } \
  T __tsan_atomic##bits##_exchange(volatile T* at, T value, int) {                                                  \
    return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);                                                        \
  }                                                                                                                 \
  T __tsan_atomic##bits##_fetch_add(volatile T* at, T value, int) {                                                 \
    return __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST);                                                         \
  }                                                                                                                 \
  T __tsan_atomic##bits##_fetch_sub(volatile T* at, T value, int) {                                                 \
    return __atomic_fetch_sub(at, value, __ATOMIC_SEQ_CST);                                                         \
  }                                                                                                                 \
  bool __tsan_atomic##bits##_compare_exchange_strong(volatile T* at, T* expected, T value, int, int) {              \
    return __atomic_compare_exchange_n(at, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);             \
  }                                                                                                                 \
  bool __tsan_atomic##bits##_compare_exchange_weak(volatile T* at, T* expected, T value, int, int) {                \
    return __atomic_compare_exchange_n(at, expected, value, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);              \
  }

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_read_range(void* memory, size_t bytes) { Touch(memory, bytes, false, false, __builtin_return_address(0)); }
void __tsan_write_range(void* memory, size_t bytes) { Touch(memory, bytes, true, false, __builtin_return_address(0)); }
LS_ACCESSES(1)
LS_ACCESSES(2)
LS_ACCESSES(4)
LS_ACCESSES(8)
LS_ACCESSES(16)
LS_ATOMICS(8, uint8_t)
LS_ATOMICS(32, uint32_t)
LS_ATOMICS(64, uint64_t)

void __ubsan_handle_out_of_bounds_abort(const Place* place, uintptr_t index) {
  const auto* const kernel = std::exchange(running, nullptr);
  ReportAt(kernel, *place, "index " + std::to_string(index) + " of an array that is smaller");
}
void __ubsan_handle_type_mismatch_v1_abort(const WrongType* wrong, uintptr_t address) {
  const auto* const kernel = std::exchange(running, nullptr);
  ReportAt(kernel, wrong->place,
           "an object at address " + std::to_string(address) + ", which is not aligned to " +
               std::to_string(1 << wrong->alignment_bits) + " bytes");
}

}  // extern "C"
// NOLINTEND

#endif  // LS_HOST_CHECKS
