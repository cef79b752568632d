// The checker's view of the running kernel thread and its block: the addresses of its private memory, and the times of
// its warps between barriers. The executor of blocks keeps it up to date.
//
// Threading: owned by the host thread that runs the block.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_KERNEL_CHECKS_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_KERNEL_CHECKS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "worker/device/cuda/checker/access.h"
#include "worker/device/cuda/checker/memory_map.h"
#include "worker/device/cuda/checker/shadow.h"
#include "worker/device/cuda/checker/shared_variables.h"

namespace lockstep::device::cuda::checker {

// A range of addresses.
struct Range {
  uintptr_t from = 0;
  size_t bytes = 0;

  static Range Of(const void* memory, size_t bytes) { return {reinterpret_cast<uintptr_t>(memory), bytes}; }
  bool Has(uintptr_t address) const { return address - from < bytes; }
};

class KernelChecks {
 public:
  // `built_in`: the memory of threadIdx and the like. `of_host`: the code may access host memory too.
  explicit KernelChecks(Range built_in, bool of_host = false) : built_in_(built_in), of_host_(of_host) {}

  void BeginLaunch(const Now& now) {
    now_ = now;
    last_ = nullptr;
  }
  void BeginBlock(uint64_t block, size_t threads, Range dynamic);
  void PassBlockBarrier();
  void PassWarpBarrier(size_t warp) { ++times_[warp]; }

  // Until Leave the calling host thread runs kernel thread `thread` on this stack.
  void Enter(size_t thread, Range stack);
  static void Leave();

  // "thread 3 of block 0": the running thread.
  std::string DescribeThread() const;
  // Checks a StoreSame (code.h) of the running thread.
  void StoreSame(const void* memory, size_t bytes, const void* return_address);
  // Checks an access of the running thread; ends the process if it is invalid or a race. `aligned`: the access must be
  // aligned to its size.
  void Touch(uintptr_t address, size_t bytes, bool write, bool aligned, const void* return_address) {
    if (stack_.Has(address) || (built_in_.Has(address) && !write)) return;
    TouchMemory({.address = address, .bytes = bytes, .write = write, .aligned = aligned}, return_address);
  }

 private:
  struct Request {
    uintptr_t address;
    size_t bytes;
    bool write;
    bool aligned;
  };
  void TouchMemory(const Request& request, const void* return_address);
  void TouchDevice(const Request& request);
  void TouchVariable(const Request& request);
  void TouchPinned(const Request& request);
  [[noreturn]] void Refuse(const Request& request, const std::string& why);
  void TouchShadow(const Request& request, Shadow& shadow, size_t offset, bool of_block, absl::string_view memory);
  bool IsConstant(uintptr_t address);
  [[noreturn]] void ReportRace(const Request& request, const Access& past, bool past_wrote, absl::string_view memory);
  std::string Describe(const Request& request) const;

  const Range built_in_;
  const bool of_host_;
  Range stack_;
  // Caches: the last piece of device memory and the last __shared__ variable that this launch accessed.
  Piece* last_ = nullptr;
  SharedMemory::Found last_shared_;
  Range last_variable_;
  Range dynamic_;
  Range constants_;  // the mapping of the program that held the last constant
  std::unique_ptr<Shadow> dynamic_shadow_;
  SharedMemory shared_;
  Now now_;
  std::vector<uint32_t> times_;  // of warps
};

// The checks of the kernel thread that runs on this host thread; null outside of kernels.
extern thread_local KernelChecks* running __attribute__((tls_model("initial-exec")));

// Runs `work`, the fake of a library's kernel, as an operation of the calling thread's stream. It accesses device
// memory by Load and Store, which are checked; its accesses to host memory are not.
void RunLibrary(const char* name, absl::FunctionRef<void()> work);

template <typename T>
T Load(const void* base, int64_t at) {
  const T* const from = static_cast<const T*>(base) + at;
  if (running != nullptr) running->Touch(reinterpret_cast<uintptr_t>(from), sizeof(T), false, true, nullptr);
  return *from;
}
template <typename T>
void Store(void* base, int64_t at, T value) {
  T* const to = static_cast<T*>(base) + at;
  if (running != nullptr) running->Touch(reinterpret_cast<uintptr_t>(to), sizeof(T), true, true, nullptr);
  *to = value;
}

}  // namespace lockstep::device::cuda::checker

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_KERNEL_CHECKS_H_
