#include "worker/device/cuda/runtime/device_memory.h"

#include <sys/mman.h>

#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status/check.h"
#include "worker/device/cuda/checker/checker.h"
#include "worker/device/cuda/runtime/host_gpu.h"

namespace lockstep::device::cuda {
namespace {

constexpr int kGarbage = 0xa5;

void Protect(std::byte* address, size_t bytes, int protection) {
  LS_CHECK(mprotect(address, Pages(bytes), protection) == 0, "pages of our own change their protection");
}

std::byte* TakeAddresses(size_t bytes) {
  const std::lock_guard<std::mutex> lock(checker::Lock());
  return checker::Map().Take(bytes);
}

}  // namespace

DeviceMemory& DeviceMemory::Get() {
  static auto* memory = new DeviceMemory;
  return *memory;
}

absl::StatusOr<std::byte*> DeviceMemory::Allocate(size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool taken = bytes <= kMostHostBytes && TakeOfHostGpu(static_cast<int64_t>(bytes));
  std::byte* const address = taken ? TakeAddresses(bytes) : nullptr;
  if (address == nullptr) {
    if (taken) ReturnToHostGpu(static_cast<int64_t>(bytes));
    return absl::ResourceExhaustedError(absl::StrCat("the GPU has no room for ", bytes, " bytes; ", HostGpuFree(),
                                                     " of ", HostGpuTotal(), " are free"));
  }
  Protect(address, bytes, PROT_READ | PROT_WRITE);
  std::memset(address, kGarbage, Pages(bytes));
  blocks_[address] = bytes;
  if (working_ == 0) Protect(address, bytes, PROT_NONE);
  return address;
}

void DeviceMemory::Free(std::byte* address) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto block = blocks_.find(address);
  LS_CHECK(block != blocks_.end(), "device memory is freed once, by its address");
  ReturnToHostGpu(static_cast<int64_t>(block->second));
  {
    const std::lock_guard<std::mutex> checks(checker::Lock());
    checker::CheckFree(*checker::Map().Device(reinterpret_cast<uintptr_t>(address)));
    void* const closed =
        mmap(address, Pages(block->second), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    LS_CHECK(closed == address, "pages of our own are given back");
    checker::Map().GiveBack(address);
  }
  blocks_.erase(block);
}

void DeviceMemory::BeginWork() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (working_++ == 0) ProtectAll(PROT_READ | PROT_WRITE);
}

void DeviceMemory::EndWork() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (--working_ == 0) ProtectAll(PROT_NONE);
}

void DeviceMemory::ProtectAll(int protection) {
  for (const auto& [address, bytes] : blocks_) Protect(address, bytes, protection);
}

}  // namespace lockstep::device::cuda
