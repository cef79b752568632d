#include "worker/device/cuda/runtime/host_gpu.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <mutex>

#include "absl/status/status.h"
#include "common/status/check.h"

namespace lockstep::device::cuda {
namespace {

// What one process holds, in a file that those who share the GPU map.
struct Holding {
  int64_t pid = 0;
  int64_t bytes = 0;
};
constexpr int kMostProcesses = 64;

int64_t FromEnvironment(const char* name, int64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoll(text);
}

class HostGpu {
 public:
  static HostGpu& Get() {
    static auto* gpu = new HostGpu;
    return *gpu;
  }

  void Set(const HostGpuSettings& settings) {
    const std::lock_guard<std::mutex> lock(mutex_);
    settings_ = settings;
    held_ = opened_ ? settings.context : 0;
  }
  HostGpuSettings settings() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return settings_;
  }
  int64_t held() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return held_;
  }
  int64_t Free() {
    const Locked locked(*this);
    return settings_.total - Others() - held_;
  }
  bool Take(int64_t bytes) {
    const Locked locked(*this);
    const int64_t all = bytes + (opened_ ? 0 : settings_.context);
    if (all > settings_.total - Others() - held_) return false;
    opened_ = true;
    held_ += all;
    Write();
    return true;
  }
  void Return(int64_t bytes) {
    const Locked locked(*this);
    held_ -= bytes;
    Write();
  }

 private:
  HostGpu() {
    settings_.total = FromEnvironment("LOCKSTEP_HOST_GPU_BYTES", settings_.total);
    settings_.context = FromEnvironment("LOCKSTEP_HOST_CONTEXT_BYTES", settings_.context);
    const char* const path = std::getenv("LOCKSTEP_HOST_GPU_FILE");
    if (path == nullptr) return;
    constexpr size_t kBytes = kMostProcesses * sizeof(Holding);
    file_ = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    LS_CHECK(file_ >= 0 && ftruncate(file_, kBytes) == 0, "LOCKSTEP_HOST_GPU_FILE can be written");
    void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    LS_CHECK(memory != MAP_FAILED, "LOCKSTEP_HOST_GPU_FILE can be mapped");
    shared_ = static_cast<Holding*>(memory);
  }

  // Alone among the threads of this process, and among those who share the GPU.
  class Locked {
   public:
    explicit Locked(HostGpu& gpu) : gpu_(gpu), lock_(gpu.mutex_) {
      if (gpu_.file_ >= 0) LS_CHECK(flock(gpu_.file_, LOCK_EX) == 0, "the file of a shared GPU can be locked");
    }
    ~Locked() {
      if (gpu_.file_ >= 0) flock(gpu_.file_, LOCK_UN);
    }

   private:
    HostGpu& gpu_;
    const std::lock_guard<std::mutex> lock_;
  };

  // Held by other processes; those that ended are struck off.
  int64_t Others() {
    int64_t bytes = 0;
    for (int i = 0; shared_ != nullptr && i < kMostProcesses; ++i) {
      Holding& holding = shared_[i];
      if (holding.pid == 0 || holding.pid == getpid()) continue;
      if (kill(static_cast<pid_t>(holding.pid), 0) != 0 && errno == ESRCH) {
        holding = {};
      } else {
        bytes += holding.bytes;
      }
    }
    return bytes;
  }

  void Write() {
    if (shared_ == nullptr) return;
    Holding* own = nullptr;
    for (int i = 0; i < kMostProcesses; ++i) {
      if (shared_[i].pid == getpid()) own = &shared_[i];
    }
    for (int i = 0; own == nullptr && i < kMostProcesses; ++i) {
      if (shared_[i].pid == 0) own = &shared_[i];
    }
    LS_CHECK(own != nullptr, "so many processes share a GPU");
    *own = {.pid = getpid(), .bytes = held_};
  }

  std::mutex mutex_;
  HostGpuSettings settings_;
  bool opened_ = false;
  int64_t held_ = 0;  // by this process
  int file_ = -1;
  Holding* shared_ = nullptr;
};

}  // namespace

void SetHostGpu(const HostGpuSettings& settings) { HostGpu::Get().Set(settings); }
int64_t HostGpuTotal() { return HostGpu::Get().settings().total; }
int64_t HostGpuFree() { return HostGpu::Get().Free(); }
bool TakeOfHostGpu(int64_t bytes) { return HostGpu::Get().Take(bytes); }
void ReturnToHostGpu(int64_t bytes) { HostGpu::Get().Return(bytes); }

absl::StatusOr<int64_t> MemoryOfProcess(int) {
  if (!HostGpu::Get().settings().measurable) return absl::UnimplementedError("host execution was told not to say");
  return HostGpu::Get().held();
}

FixedMemory FixedMemoryOfCuda() { return HostGpu::Get().settings().fixed; }

}  // namespace lockstep::device::cuda
