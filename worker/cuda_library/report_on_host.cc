#include "worker/cuda_library/report.h"
#include "worker/device/cuda/runtime/runtime_on_host.h"

namespace lockstep::device {

CudaReport ReportCuda() {
  constexpr char kWhyNot[] = "host execution has no library of NVIDIA's";
  CudaReport report;
  report.driver = {"host execution", ""};
  report.runtime = {"host execution", ""};
  report.cublaslt = {"", kWhyNot};
  report.cudnn = {"", kWhyNot};
  report.nccl = {"", kWhyNot};
  const absl::StatusOr<cuda::GpuFacts> facts = cuda::FactsOf(0);
  CudaGpu gpu{.ordinal = 0,
              .name = facts->name,
              .capability_major = facts->capability_major,
              .capability_minor = facts->capability_minor};
  const absl::Status known = cuda::MemoryNow(&gpu.free_bytes, &gpu.total_bytes);
  if (!known.ok()) gpu.problem = std::string(known.message());
  report.gpus.push_back(std::move(gpu));
  return report;
}

}  // namespace lockstep::device
