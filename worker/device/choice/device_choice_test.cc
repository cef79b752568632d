#include "worker/device/choice/device_choice.h"

#include <catch2/catch.hpp>
#include <string>

namespace lockstep::device {
namespace {

using Catch::Contains;

// A machine with GPUs, the third of which cannot be used, or with none and the reason.
absl::StatusOr<CudaReport> Gpus() {
  CudaReport report;
  for (int i = 0; i < 3; ++i) {
    report.gpus.push_back({.ordinal = i, .name = "G", .total_bytes = int64_t{8} << 30, .free_bytes = int64_t{6} << 30});
  }
  report.gpus[2].problem = "compute capability 5.2";
  return report;
}
absl::StatusOr<CudaReport> NoDriver() { return CudaReport{.problem = "there is no NVIDIA driver"}; }
absl::StatusOr<CudaReport> NoLibrary() { return absl::FailedPreconditionError("no CUDA: nowhere"); }
absl::StatusOr<CudaReport> NobodyAsks() {
  FAIL("the machine's GPUs do not matter here");
  return CudaReport{};
}

WorkerDevice Flag(const std::string& text, int local_rank = 0) {
  WorkerDevice device = ParseWorkerDevice(text).value();
  device.local_rank = local_rank;
  return device;
}

std::string Refusal(const absl::StatusOr<ChosenDevice>& chosen) {
  REQUIRE_FALSE(chosen.ok());
  CHECK(absl::IsFailedPrecondition(chosen.status()));
  CHECK_THAT(std::string(chosen.status().message()), !Contains("\n"));
  return std::string(chosen.status().message());
}

TEST_CASE("device choice: --device is auto, cpu, cuda or one GPU", "[device]") {
  for (const char* text : {"auto", "cpu", "cuda", "cuda:0", "cuda:7"}) CHECK(WorkerDeviceText(Flag(text)) == text);
  CHECK(Flag("cuda:7").ordinal == 7);
  for (const char* text : {"", "gpu", "cuda:", "cuda:-1", "cuda:1x", "cuda: 1", "cuda:99999999999", "cpu:0"}) {
    INFO(text);
    CHECK_THAT(std::string(ParseWorkerDevice(text).status().message()), Contains("cuda:N"));
  }
}

TEST_CASE("device choice: auto takes a GPU where there is one, else the CPU, and says why", "[device]") {
  const ChosenDevice gpu = ChooseDevice(JobDevice::kAuto, Flag("auto"), "", Gpus).value();
  const ChosenDevice no_driver = ChooseDevice(JobDevice::kAuto, Flag("auto"), "", NoDriver).value();
  const ChosenDevice no_library = ChooseDevice(JobDevice::kAuto, Flag("auto"), "", NoLibrary).value();

  CHECK(gpu.kind == DeviceKind::kCuda);
  CHECK(gpu.reason == "GPU 0 of 3, G, 6.0 of 8.0 GiB free: the best of this machine");
  CHECK(no_driver.kind == DeviceKind::kCpu);
  CHECK(no_driver.reason == "the CPU: there is no NVIDIA driver");
  CHECK(no_library.reason == "the CPU: no CUDA: nowhere");
  CHECK(ChooseDevice(JobDevice::kAuto, Flag("cpu"), "", NobodyAsks)->kind == DeviceKind::kCpu);
}

TEST_CASE("device choice: workers of one machine take its usable GPUs in turn, unless told", "[device]") {
  const auto ordinal = [](const WorkerDevice& flag) {
    return ChooseDevice(JobDevice::kAuto, flag, "", Gpus).value().gpu.ordinal;
  };

  CHECK(ordinal(Flag("auto", 0)) == 0);
  CHECK(ordinal(Flag("auto", 1)) == 1);
  CHECK(ordinal(Flag("cuda", 2)) == 0);
  CHECK(ordinal(Flag("cuda:1", 4)) == 1);
  CHECK_THAT(Refusal(ChooseDevice(JobDevice::kAuto, Flag("cuda:2"), "", Gpus)),
             Contains("GPU 2 (G) cannot be used: compute capability 5.2"));
  CHECK_THAT(Refusal(ChooseDevice(JobDevice::kAuto, Flag("cuda:3"), "", Gpus)), Contains("no GPU 3 here, there are 3"));
}

TEST_CASE("device choice: the kernel plan decides what the job leaves open", "[device]") {
  CHECK(ChooseDevice(JobDevice::kAuto, Flag("auto"), "cuda", Gpus)->kind == DeviceKind::kCuda);
  CHECK(ChooseDevice(JobDevice::kAuto, Flag("auto"), "cpu", NobodyAsks)->kind == DeviceKind::kCpu);
  CHECK(ChooseDevice(JobDevice::kAuto, Flag("cpu"), "cpu", NobodyAsks)->kind == DeviceKind::kCpu);

  CHECK_THAT(Refusal(ChooseDevice(JobDevice::kAuto, Flag("cpu"), "cuda", NobodyAsks)),
             Contains("of kind cuda: it is trained on GPUs") && Contains("computes on its CPU (--device cpu keeps"));
  CHECK_THAT(Refusal(ChooseDevice(JobDevice::kAuto, Flag("auto"), "cuda", NoDriver)),
             Contains("computes on its CPU (there is no NVIDIA driver)") && Contains("start a new run"));
  CHECK_THAT(Refusal(ChooseDevice(JobDevice::kAuto, Flag("cuda:1"), "cpu", NobodyAsks)),
             Contains("of kind cpu, and this worker computes on a GPU (--device cuda:1 keeps") &&
                 Contains("--device auto or cpu"));
}

TEST_CASE("device choice: the kind that the job names holds, and a worker that rules it out is refused", "[device]") {
  CHECK(ChooseDevice(JobDevice::kCuda, Flag("auto", 1), "", Gpus)->gpu.ordinal == 1);
  CHECK(ChooseDevice(JobDevice::kCpu, Flag("auto"), "", NobodyAsks)->kind == DeviceKind::kCpu);
  CHECK(ChooseDevice(JobDevice::kReference, Flag("cpu"), "", NobodyAsks)->kind == DeviceKind::kReference);

  CHECK_THAT(Refusal(ChooseDevice(JobDevice::kCuda, Flag("cpu"), "", NobodyAsks)),
             Contains("resources.device: cuda") && Contains("--device cpu rules them out"));
  CHECK_THAT(Refusal(ChooseDevice(JobDevice::kCuda, Flag("auto"), "", NoDriver)),
             Contains("resources.device: cuda") && Contains("there is no NVIDIA driver") && Contains("--machine"));
  CHECK_THAT(Refusal(ChooseDevice(JobDevice::kCuda, Flag("cuda:5"), "", Gpus)), Contains("no GPU 5 here"));
  CHECK_THAT(Refusal(ChooseDevice(JobDevice::kCpu, Flag("cuda"), "", NobodyAsks)),
             Contains("`resources.device: cpu`") && Contains("started with --device cuda;"));
  CHECK_THAT(Refusal(ChooseDevice(JobDevice::kReference, Flag("cuda:1"), "", NobodyAsks)),
             Contains("`resources.device: reference`"));
}

}  // namespace
}  // namespace lockstep::device
