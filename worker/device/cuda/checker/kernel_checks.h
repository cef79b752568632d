// What the checker knows of the kernel thread that runs, and of its block: where its own memory lies, and when its
// accesses are made in the order of barriers. The executor of blocks tells it.
//
// Threading: owned by the thread of the host that runs the block.
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
  // `built_in`: threadIdx and its like. `of_host`: what runs may touch memory of the host, too.
  explicit KernelChecks(Range built_in, bool of_host = false) : built_in_(built_in), of_host_(of_host) {}

  void BeginLaunch(const Now& now) {
    now_ = now;
    last_ = nullptr;
  }
  void BeginBlock(uint64_t block, size_t threads, Range dynamic);
  void PassBlockBarrier();
  void PassWarpBarrier(size_t warp) { ++times_[warp]; }

  // From here on until Leave the calling thread of the host runs this kernel thread, on this stack.
  void Enter(size_t thread, Range stack);
  static void Leave();

  // "thread 3 of block 0", of the running one.
  std::string DescribeThread() const;
  // For a store of the running kernel thread that others make, too, of the same value (code.h).
  void StoreSame(const void* memory, size_t bytes, const void* return_address);
  // An access that a kernel thread makes; ends the process where it may not. `aligned`: to its size.
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
  // The piece of device memory and the __shared__ variable that were touched last in this launch.
  Piece* last_ = nullptr;
  SharedMemory::Found last_shared_;
  Range last_variable_;
  Range dynamic_;
  Range constants_;  // of the program, where the last one was
  std::unique_ptr<Shadow> dynamic_shadow_;
  SharedMemory shared_;
  Now now_;
  std::vector<uint32_t> times_;  // of warps
};

// Whose thread runs now on this thread of the host; null outside of kernels.
extern thread_local KernelChecks* running __attribute__((tls_model("initial-exec")));

// Runs `work` as an operation of the calling thread's stream, for what stands in for a library. It tells of its
// accesses by Load and Store; memory of the host is its own business.
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
