#include "worker/device/choice/device_choice.h"

#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/status/status_macros.h"

namespace lockstep::device {
namespace {

constexpr double kGiB = int64_t{1} << 30;

// Where somebody finds out what a machine lacks.
constexpr char kAsk[] = "`lockstep check --machine` says what it has";

std::string GpuText(const CudaGpu& gpu, size_t count) {
  return absl::StrFormat("GPU %d of %d, %s, %.1f of %.1f GiB free", gpu.ordinal, count, gpu.name,
                         static_cast<double>(gpu.free_bytes) / kGiB, static_cast<double>(gpu.total_bytes) / kGiB);
}

// The GPU that the worker asks for, or the one whose turn it is.
absl::StatusOr<CudaGpu> ChooseGpu(const CudaReport& report, const WorkerDevice& worker) {
  if (!report.problem.empty()) return absl::FailedPreconditionError(report.problem);
  std::vector<const CudaGpu*> usable;
  std::string problems;
  for (const CudaGpu& gpu : report.gpus) {
    if (worker.ordinal.has_value() && *worker.ordinal != gpu.ordinal) continue;
    if (gpu.problem.empty()) {
      usable.push_back(&gpu);
    } else {
      absl::StrAppend(&problems, problems.empty() ? "" : "; ", "GPU ", gpu.ordinal, " (", gpu.name,
                      ") cannot be used: ", gpu.problem);
    }
  }
  if (!usable.empty()) return *usable[static_cast<size_t>(worker.local_rank) % usable.size()];
  if (!problems.empty()) return absl::FailedPreconditionError(problems);
  const std::string wanted = worker.ordinal.has_value() ? absl::StrCat(" ", *worker.ordinal) : "";
  return absl::FailedPreconditionError(
      absl::StrCat("there is no GPU", wanted, " here, there are ", report.gpus.size(), ", counted from 0"));
}

absl::StatusOr<ChosenDevice> Gpu(const WorkerDevice& worker, absl::string_view because,
                                 absl::FunctionRef<absl::StatusOr<CudaReport>()> find) {
  LS_ASSIGN_OR_RETURN(const CudaReport report, find());
  LS_ASSIGN_OR_RETURN(CudaGpu gpu, ChooseGpu(report, worker));
  ChosenDevice chosen{.kind = DeviceKind::kCuda, .gpu = std::move(gpu)};
  chosen.reason = absl::StrCat(GpuText(chosen.gpu, report.gpus.size()), ": ", because);
  return chosen;
}

ChosenDevice Cpu(absl::string_view because) {
  return {.kind = DeviceKind::kCpu, .gpu = {}, .reason = absl::StrCat("the CPU: ", because)};
}

absl::Status NeedsGpu(absl::string_view why) {
  return absl::FailedPreconditionError(
      absl::StrCat("the job asks for GPUs (`resources.device: cuda`), and here ", why, "; ", kAsk));
}

// The job leaves the kind open.
absl::StatusOr<ChosenDevice> ChooseFreely(const WorkerDevice& worker, absl::string_view planned,
                                          absl::FunctionRef<absl::StatusOr<CudaReport>()> find) {
  using Kind = WorkerDevice::Kind;
  if (!planned.empty() && planned != "cuda") {
    if (worker.kind == Kind::kCuda) {
      return CheckPlannedKind(planned, "cuda", absl::StrCat("--device ", WorkerDeviceText(worker), " keeps it there"));
    }
    return Cpu(absl::StrCat("the job's kernel plan is of kind ", planned));
  }
  if (worker.kind == Kind::kCpu) {
    if (!planned.empty()) LS_RETURN_IF_ERROR(CheckPlannedKind(planned, "cpu", "--device cpu keeps it there"));
    return Cpu("--device cpu says so");
  }
  const std::string because = planned == "cuda"            ? "the job's kernel plan is of kind cuda"
                              : worker.kind == Kind::kCuda ? "--device cuda says so"
                                                           : "the best of this machine";
  absl::StatusOr<ChosenDevice> gpu = Gpu(worker, because, find);
  if (gpu.ok()) return gpu;
  if (planned == "cuda") return CheckPlannedKind(planned, "cpu", gpu.status().message());
  if (worker.kind == Kind::kAuto) return Cpu(gpu.status().message());
  return absl::FailedPreconditionError(
      absl::StrCat("--device ", WorkerDeviceText(worker), ": ", gpu.status().message(), "; ", kAsk));
}

}  // namespace

absl::StatusOr<WorkerDevice> ParseWorkerDevice(absl::string_view text) {
  using Kind = WorkerDevice::Kind;
  if (text == "auto") return WorkerDevice{};
  if (text == "cpu") return WorkerDevice{.kind = Kind::kCpu, .ordinal = {}};
  if (text == "cuda") return WorkerDevice{.kind = Kind::kCuda, .ordinal = {}};
  absl::string_view number = text;
  int ordinal = 0;
  if (absl::ConsumePrefix(&number, "cuda:") && !number.empty() &&
      number.find_first_not_of("0123456789") == number.npos && absl::SimpleAtoi(number, &ordinal)) {
    return WorkerDevice{.kind = Kind::kCuda, .ordinal = ordinal};
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--device: expected auto, cpu, cuda or cuda:N, N counted from 0; found '", text, "'"));
}

std::string WorkerDeviceText(const WorkerDevice& device) {
  switch (device.kind) {
    case WorkerDevice::Kind::kCpu:
      return "cpu";
    case WorkerDevice::Kind::kCuda:
      return device.ordinal.has_value() ? absl::StrCat("cuda:", *device.ordinal) : "cuda";
    case WorkerDevice::Kind::kAuto:
      break;
  }
  return "auto";
}

absl::StatusOr<ChosenDevice> ChooseDevice(JobDevice job, const WorkerDevice& worker, absl::string_view planned,
                                          absl::FunctionRef<absl::StatusOr<CudaReport>()> find) {
  using Kind = WorkerDevice::Kind;
  switch (job) {
    case JobDevice::kAuto:
      return ChooseFreely(worker, planned, find);
    case JobDevice::kCuda: {
      if (worker.kind == Kind::kCpu) return NeedsGpu("--device cpu rules them out");
      absl::StatusOr<ChosenDevice> gpu = Gpu(worker, "the job says `resources.device: cuda`", find);
      return gpu.ok() ? std::move(gpu) : NeedsGpu(gpu.status().message());
    }
    case JobDevice::kCpu:
    case JobDevice::kReference:
      break;
  }
  const absl::string_view name = job == JobDevice::kCpu ? "cpu" : "reference";
  if (worker.kind == Kind::kCuda) {
    return absl::FailedPreconditionError(
        absl::StrCat("the job is computed on CPUs (`resources.device: ", name, "`), and this worker was started with ",
                     "--device ", WorkerDeviceText(worker), "; start it with --device auto or cpu"));
  }
  ChosenDevice chosen = Cpu(absl::StrCat("the job says `resources.device: ", name, "`"));
  if (job == JobDevice::kReference) chosen.kind = DeviceKind::kReference;
  return chosen;
}

absl::Status CheckPlannedKind(absl::string_view planned, absl::string_view here, absl::string_view why) {
  if (planned == here) return absl::OkStatus();
  const std::string because = why.empty() ? "" : absl::StrCat(" (", why, ")");
  const bool gpus = planned == "cuda";
  return absl::FailedPreconditionError(
      absl::StrCat("the job's kernel plan is of kind ", planned, gpus ? ": it is trained on GPUs" : "",
                   ", and this worker computes on ",
                   here == "cuda"  ? "a GPU"
                   : here == "cpu" ? "its CPU"
                                   : absl::StrCat("the device '", here, "'"),
                   because, ", which gives other bits. ",
                   gpus ? absl::StrCat("Give it a GPU (", kAsk, ")") : "Start it with --device auto or cpu",
                   ", or start a new run in another directory, which makes a plan of its own"));
}

}  // namespace lockstep::device
