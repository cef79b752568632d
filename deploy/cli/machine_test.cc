#include "deploy/cli/machine.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"

namespace lockstep::cli {
namespace {

using device::CudaReport;

std::vector<std::string> MachineLines(const absl::StatusOr<CudaReport>& cuda, bool needs_gpu = false) {
  const device::DeviceInfo cpu{.kind = "cpu", .library = "oneDNN 1", .instruction_set = "avx2", .model = "A CPU"};
  std::vector<std::string> lines;
  for (const Finding& finding : DescribeMachine(cpu, cuda, needs_gpu)) {
    lines.push_back(absl::StrCat(finding.gravity == Gravity::kOk ? "ok " : "warn ", finding.what, ": ", finding.text));
  }
  return lines;
}

CudaReport TwoGpus() {
  CudaReport report;
  report.driver = {"13.0 (580.65.06)", ""};
  report.runtime = {"13.0", ""};
  report.cublaslt = {"13.0.2", ""};
  report.cudnn = {"9.13.0", ""};
  report.nccl = {"2.28.9", ""};
  const int64_t gib = int64_t{1} << 30;
  report.gpus = {
      {.ordinal = 0, .name = "H200", .capability_major = 9, .total_bytes = 140 * gib, .free_bytes = 130 * gib},
      {.ordinal = 1, .name = "K80", .capability_major = 3, .capability_minor = 7, .total_bytes = 12 * gib}};
  report.gpus[0].peers = {1};
  report.gpus[1].problem = "compute capability 8.0 is needed";
  return report;
}

TEST_CASE("machine: driver, toolkit, every GPU and NCCL have a line each", "[cli]") {
  CHECK(MachineLines(TwoGpus()) ==
        std::vector<std::string>{
            "ok cpu: A CPU, avx2, oneDNN 1",
            "ok driver: 13.0 (580.65.06)",
            "ok toolkit: CUDA 13.0, cuBLASLt 13.0.2, cuDNN 9.13.0",
            "ok gpu 0: H200, compute capability 9.0, 130.0 of 140.0 GiB free, reaches the memory of GPU 1",
            "warn gpu 1: K80, compute capability 3.7, 0.0 of 12.0 GiB free; cannot be used: compute capability 8.0 is "
            "needed",
            "ok nccl: 2.28.9; what it sends between hosts is not encrypted: use a private network, or WireGuard",
        });
}

TEST_CASE("machine: a part that is missing is a warning with its reason", "[cli]") {
  CudaReport report = TwoGpus();
  report.gpus.clear();
  report.cudnn = {"", "libcudnn.so.9 is not there"};
  report.nccl = {"", "libnccl.so.2 is not there"};

  CHECK(MachineLines(report) == std::vector<std::string>{"ok cpu: A CPU, avx2, oneDNN 1", "ok driver: 13.0 (580.65.06)",
                                                         "ok toolkit: CUDA 13.0, cuBLASLt 13.0.2",
                                                         "warn toolkit: no cuDNN: libcudnn.so.9 is not there",
                                                         "warn nccl: libnccl.so.2 is not there"});
}

TEST_CASE("machine: where nothing can be used one line says why, a warning only for who needs a GPU", "[cli]") {
  const CudaReport no_driver{.problem = "there is no NVIDIA driver"};

  CHECK(MachineLines(no_driver).at(1) == "ok gpu: none: there is no NVIDIA driver");
  CHECK(MachineLines(no_driver).size() == 2);
  CHECK(MachineLines(no_driver, true).at(1) == "warn gpu: none: there is no NVIDIA driver");
  CHECK(MachineLines(absl::FailedPreconditionError("no CUDA: it lies nowhere")).at(1) ==
        "ok gpu: none: no CUDA: it lies nowhere");
}

}  // namespace
}  // namespace lockstep::cli
