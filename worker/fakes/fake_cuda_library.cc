// A library for CUDA without CUDA, for tests of whatever loads one: its GPUs are invented, and what computes is the
// reference device under another name, with memory that the host cannot touch and work that waits to be waited for. The
// environment describes the machine:
//   LOCKSTEP_FAKE_GPUS      how many there are (2)
//   LOCKSTEP_FAKE_MEMORY    bytes of each (8 GiB), half of them free
//   LOCKSTEP_FAKE_PROBLEM   why nothing can be used (nothing)
//   LOCKSTEP_FAKE_BAD_GPU   the ordinal of one that cannot be used (none)
// FAKE_ABI and FAKE_VERSION, of the build, make it a library of another build.
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "common/version/version.h"
#include "worker/cuda_library/library.h"
#include "worker/device/host/reference_device.h"
#include "worker/device/kernel.h"
#include "worker/fakes/deferred_device.h"

#ifndef FAKE_ABI
#define FAKE_ABI lockstep::device::kCudaLibraryAbi
#endif
#define OTHER "lockstep 0.0.9"
#ifndef FAKE_VERSION
#define FAKE_VERSION lockstep::kVersion
#endif

namespace lockstep::device {
namespace {

constexpr int64_t kMemory = int64_t{8} << 30;

int64_t Number(const char* variable, int64_t otherwise) {
  const char* const text = std::getenv(variable);
  int64_t number = otherwise;
  return text != nullptr && absl::SimpleAtoi(text, &number) ? number : otherwise;
}

CudaReport FakeReport() {
  CudaReport report;
  report.runtime = {"13.0", ""};
  report.nccl = {"", "libnccl.so.2 is not there"};
  if (const char* const problem = std::getenv("LOCKSTEP_FAKE_PROBLEM"); problem != nullptr) {
    report.driver.problem = report.problem = problem;
    return report;
  }
  report.driver = {"13.0 (580.65.06)", ""};
  report.cublaslt = {"13.0.2", ""};
  report.cudnn = {"9.13.0", ""};
  const int count = static_cast<int>(Number("LOCKSTEP_FAKE_GPUS", 2));
  const int64_t bytes = Number("LOCKSTEP_FAKE_MEMORY", kMemory);
  for (int i = 0; i < count; ++i) {
    CudaGpu gpu{.ordinal = i, .name = "Invented GPU", .capability_major = 9, .capability_minor = 0};
    gpu.total_bytes = bytes;
    gpu.free_bytes = bytes / 2;
    for (int peer = 0; peer < count; ++peer) {
      if (peer != i) gpu.peers.push_back(peer);
    }
    if (i == Number("LOCKSTEP_FAKE_BAD_GPU", -1)) gpu.problem = "compute capability 5.2, 8.0 is needed";
    report.gpus.push_back(std::move(gpu));
  }
  if (count == 0) report.problem = "there is no NVIDIA GPU in this machine";
  return report;
}

// The reference device, deferred, which passes for a GPU.
class FakeCudaDevice final : public Device {
 public:
  FakeCudaDevice(std::unique_ptr<Device> device, const CudaGpu& gpu, const DeviceOptions& options)
      : device_(std::move(device)),
        info_{.kind = "cuda",
              .library = "invented",
              .instruction_set = "sm_90",
              .model = gpu.name,
              .threads = options.threads,
              .memory = options.memory_limit > 0 ? options.memory_limit : gpu.free_bytes,
              .tf32 = options.tf32} {}

  const DeviceInfo& info() const override { return info_; }
  absl::StatusOr<std::unique_ptr<Buffer>> Allocate(size_t bytes) override { return device_->Allocate(bytes); }
  absl::StatusOr<std::unique_ptr<Buffer>> AllocateHost(size_t bytes) override { return device_->AllocateHost(bytes); }
  bool host_visible() const override { return device_->host_visible(); }
  absl::StatusOr<std::unique_ptr<Stream>> NewStream() override { return device_->NewStream(); }
  absl::StatusOr<std::unique_ptr<Event>> NewEvent() override { return device_->NewEvent(); }
  absl::Status Supports(const KernelRequest& request) const override { return device_->Supports(request); }
  absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(const KernelRequest& request) override {
    return device_->MakeKernel(request);
  }
  absl::StatusOr<std::unique_ptr<Kernel>> MakeReorder(const ReorderRequest& request) override {
    return device_->MakeReorder(request);
  }
  StepMath& step_math() override { return device_->step_math(); }

 private:
  const std::unique_ptr<Device> device_;
  const DeviceInfo info_;
};

absl::StatusOr<std::unique_ptr<Device>> MakeFakeDevice(const DeviceOptions& options) {
  const CudaReport report = FakeReport();
  if (!report.problem.empty()) return absl::FailedPreconditionError(report.problem);
  if (options.ordinal < 0 || options.ordinal >= static_cast<int>(report.gpus.size())) {
    return absl::InvalidArgumentError(absl::StrCat("there is no GPU ", options.ordinal));
  }
  LS_ASSIGN_OR_RETURN(std::unique_ptr<Device> device, MakeReferenceDevice({}));
  device = MakeDeferredDevice(std::move(device), DeferredMemory::kHidden);
  return std::unique_ptr<Device>(
      std::make_unique<FakeCudaDevice>(std::move(device), report.gpus[options.ordinal], options));
}

}  // namespace
}  // namespace lockstep::device

extern "C" const lockstep::device::CudaLibrary* LockstepCudaLibrary() {
  static constexpr lockstep::device::CudaLibrary kLibrary = {
      .abi = FAKE_ABI,
      .program_version = FAKE_VERSION,
      .report = lockstep::device::FakeReport,
      .make_device = lockstep::device::MakeFakeDevice,
  };
  return &kLibrary;
}
