#include "worker/step/job_device.h"

#include <algorithm>
#include <string>

#include "common/job/units.h"
#include "common/status/status_macros.h"
#include "worker/device/choice/cuda_loader.h"
#include "worker/device/choice/devices.h"

namespace lockstep::worker {
namespace {

device::JobDevice DeviceOf(const JobSpec& job) {
  switch (job.resources().device()) {
    case job::Resources::DEVICE_REFERENCE:
      return device::JobDevice::kReference;
    case job::Resources::DEVICE_CPU:
      return device::JobDevice::kCpu;
    case job::Resources::DEVICE_CUDA:
      return device::JobDevice::kCuda;
    case job::Resources::DEVICE_AUTO:
    default:
      return device::JobDevice::kAuto;
  }
}

}  // namespace

absl::StatusOr<MadeDevice> MakeJobDevice(const JobSpec& job, const KernelPlan* replayed,
                                         const device::WorkerDevice& where) {
  MadeDevice made;
  const std::string planned = replayed == nullptr ? "" : replayed->device;
  LS_ASSIGN_OR_RETURN(made.chosen, device::ChooseDevice(DeviceOf(job), where, planned, device::FindCuda));
  device::DeviceOptions options = DeviceOptionsFor(static_cast<int>(job.resources().cpu_threads()), replayed);
  options.ordinal = made.chosen.gpu.ordinal;
  options.memory_limit = job::GpuMemoryBytes(job.resources().gpu_memory(), made.chosen.gpu.total_bytes);
  options.tf32 = job.numerics().tf32();
  LS_ASSIGN_OR_RETURN(made.device, device::MakeDevice(made.chosen.kind, options));
  made.memory = made.device->info().memory;
  if (made.memory == 0 && made.chosen.kind == device::DeviceKind::kCuda) {
    // The device does not say what CUDA itself left.
    const int64_t free = made.chosen.gpu.free_bytes;
    made.memory = options.memory_limit > 0 ? std::min(options.memory_limit, free) : free;
  }
  if (replayed != nullptr) LS_RETURN_IF_ERROR(CheckKernelPlan(*replayed, made.device->info()));
  return made;
}

}  // namespace lockstep::worker
