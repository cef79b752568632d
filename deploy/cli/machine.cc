#include "deploy/cli/machine.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "deploy/cli/byte_units.h"
#include "worker/device/choice/cuda_loader.h"
#include "worker/device/choice/devices.h"

namespace lockstep::cli {
namespace {

Gravity OkOrWarning(bool ok) { return ok ? Gravity::kOk : Gravity::kWarning; }

Finding Describe(const device::CudaGpu& gpu) {
  std::string text = absl::StrFormat(
      "%s, compute capability %d.%d, %.1f of %.1f GiB free", gpu.name, gpu.capability_major, gpu.capability_minor,
      static_cast<double>(gpu.free_bytes) / kGiB, static_cast<double>(gpu.total_bytes) / kGiB);
  if (!gpu.peers.empty()) absl::StrAppend(&text, ", reaches the memory of GPU ", absl::StrJoin(gpu.peers, ", "));
  if (!gpu.problem.empty()) absl::StrAppend(&text, "; cannot be used: ", gpu.problem);
  return {OkOrWarning(gpu.problem.empty()), absl::StrCat("gpu ", gpu.ordinal), std::move(text)};
}

Finding Describe(const std::string& what, const device::CudaComponent& component) {
  const bool ok = !component.version.empty();
  return {OkOrWarning(ok), what, ok ? component.version : component.problem};
}

// The parts that a library of one toolkit brings: in one line while all are there.
void DescribeToolkit(const device::CudaReport& cuda, std::vector<Finding>* findings) {
  std::string text = absl::StrCat("CUDA ", cuda.runtime.version);
  std::vector<Finding> missing;
  for (const auto& [name, part] : {std::pair("cuBLASLt", &cuda.cublaslt), std::pair("cuDNN", &cuda.cudnn)}) {
    if (part->version.empty()) {
      missing.push_back({Gravity::kWarning, "toolkit", absl::StrCat("no ", name, ": ", part->problem)});
    } else {
      absl::StrAppend(&text, ", ", name, " ", part->version);
    }
  }
  findings->push_back({Gravity::kOk, "toolkit", std::move(text)});
  findings->insert(findings->end(), missing.begin(), missing.end());
}

}  // namespace

std::vector<Finding> DescribeMachine(const device::DeviceInfo& cpu, const absl::StatusOr<device::CudaReport>& cuda,
                                     bool needs_gpu) {
  std::vector<Finding> findings;
  findings.push_back({Gravity::kOk, "cpu", absl::StrCat(cpu.model, ", ", cpu.instruction_set, ", ", cpu.library)});
  const std::string problem = cuda.ok() ? cuda->problem : std::string(cuda.status().message());
  if (!problem.empty()) {
    findings.push_back({OkOrWarning(!needs_gpu), "gpu", absl::StrCat("none: ", problem)});
    return findings;
  }
  findings.push_back(Describe("driver", cuda->driver));
  DescribeToolkit(*cuda, &findings);
  for (const device::CudaGpu& gpu : cuda->gpus) findings.push_back(Describe(gpu));
  findings.push_back(Describe("nccl", cuda->nccl));
  if (!cuda->nccl.version.empty()) {
    findings.back().text += "; what it sends between hosts is not encrypted: use a private network, or WireGuard";
  }
  return findings;
}

void AddMachine(bool needs_gpu, Findings& findings) {
  const auto cpu = device::MakeDevice(device::DeviceKind::kCpu, {});
  if (!cpu.ok()) return findings.Error("cpu", cpu.status(), kExitBug);
  for (Finding& finding : DescribeMachine((*cpu)->info(), device::FindCuda(), needs_gpu)) {
    findings.Add(std::move(finding));
  }
}

}  // namespace lockstep::cli
