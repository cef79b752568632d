#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/device/cuda/runtime/gpu_memory.h"

namespace lockstep::device::cuda {
namespace {

// nvmlProcessInfo_t of nvmlDeviceGetComputeRunningProcesses_v3.
struct ProcessInfo {
  unsigned pid = 0;
  unsigned long long used = 0;
  unsigned gpu_instance = 0;
  unsigned compute_instance = 0;
};
constexpr unsigned long long kNotAvailable = ~0ull;
constexpr int kTooSmall = 7;  // NVML_ERROR_INSUFFICIENT_SIZE
constexpr unsigned kMostProcesses = 4096;

// The driver's library, opened once for the life of the process.
class Nvml {
 public:
  static const Nvml& Get() {
    static const auto* nvml = new Nvml;
    return *nvml;
  }

  absl::StatusOr<std::vector<ProcessInfo>> ProcessesOf(const char* pci_bus_id) const {
    void* device = nullptr;
    if (handle_of_ == nullptr || processes_of_ == nullptr || handle_of_(pci_bus_id, &device) != 0) {
      return absl::UnimplementedError("the driver's NVML does not know this GPU");
    }
    for (unsigned room = 64; room <= kMostProcesses; room *= 4) {
      std::vector<ProcessInfo> processes(room);
      unsigned count = room;
      const int result = processes_of_(device, &count, processes.data());
      if (result == kTooSmall) continue;
      if (result != 0) return absl::UnimplementedError(absl::StrCat("NVML lists no processes: error ", result));
      processes.resize(count);
      return processes;
    }
    return absl::UnimplementedError("more processes on one GPU than are looked at");
  }

 private:
  Nvml() {
    void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    const auto init = reinterpret_cast<int (*)()>(dlsym(library, "nvmlInit_v2"));
    if (init == nullptr || init() != 0) return;
    handle_of_ = reinterpret_cast<decltype(handle_of_)>(dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2"));
    processes_of_ =
        reinterpret_cast<decltype(processes_of_)>(dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v3"));
  }

  int (*handle_of_)(const char* pci_bus_id, void** device) = nullptr;
  int (*processes_of_)(void* device, unsigned* count, ProcessInfo* processes) = nullptr;
};

}  // namespace

absl::StatusOr<int64_t> MemoryOfProcess(int ordinal) {
  char pci_bus_id[32] = {};
  if (cudaDeviceGetPCIBusId(pci_bus_id, sizeof pci_bus_id, ordinal) != cudaSuccess) {
    (void)cudaGetLastError();
    return absl::UnimplementedError("CUDA does not say which GPU this is");
  }
  const absl::StatusOr<std::vector<ProcessInfo>> processes = Nvml::Get().ProcessesOf(pci_bus_id);
  if (!processes.ok()) return processes.status();
  const auto own = static_cast<unsigned>(getpid());
  const ProcessInfo* found = nullptr;
  for (const ProcessInfo& process : *processes) {
    if (process.pid == own) found = &process;
  }
  // In a container processes have other numbers there: the only one there is can be no other.
  if (found == nullptr && processes->size() == 1) found = &processes->front();
  if (found == nullptr || found->used == kNotAvailable) {
    return absl::UnimplementedError("NVML does not say what this process holds");
  }
  return static_cast<int64_t>(found->used);
}

// To be measured on each kind of GPU: nvidia-smi shows some 500 MiB for a context of CUDA 13 on Hopper.
FixedMemory FixedMemoryOfCuda() { return {.context = int64_t{512} << 20, .later = int64_t{256} << 20}; }

}  // namespace lockstep::device::cuda
