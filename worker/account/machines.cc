#include "worker/account/machines.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace lockstep::worker {
namespace {

constexpr Machine kMachines[] = {
    {.name = "h100",
     .title = "NVIDIA H100 SXM, 80 GB HBM3",
     .bf16_tflops = 989.4,
     .fp16_tflops = 989.4,
     .tf32_tflops = 494.7,
     .fp32_tflops = 66.9,
     .memory_gbs = 3350,
     .l2_mb = 50,
     .multiprocessors = 132,
     .link_gbs = 450,
     .network_gbs = 50,
     .bus_gbs = 64,
     .source = "NVIDIA H100 Tensor Core GPU data sheet; architecture white paper for dense rates, L2, multiprocessors"},
    {.name = "h200",
     .title = "NVIDIA H200 SXM, 141 GB HBM3e",
     .bf16_tflops = 989.4,
     .fp16_tflops = 989.4,
     .tf32_tflops = 494.7,
     .fp32_tflops = 66.9,
     .memory_gbs = 4800,
     .l2_mb = 50,
     .multiprocessors = 132,
     .link_gbs = 450,
     .network_gbs = 50,
     .bus_gbs = 64,
     .source = "NVIDIA H200 Tensor Core GPU data sheet; units as the H100's"},
    {.name = "b200",
     .title = "NVIDIA B200 SXM (HGX), 180 GB HBM3e",
     .bf16_tflops = 2250,
     .fp16_tflops = 2250,
     .tf32_tflops = 1125,
     .fp32_tflops = 75,
     .memory_gbs = 7700,
     .l2_mb = 126,
     .multiprocessors = 148,
     .link_gbs = 900,
     .network_gbs = 50,
     .bus_gbs = 64,
     .source = "NVIDIA HGX B200 data sheet, an eighth of a board; L2 and multiprocessors as CUDA reports them"},
};

}  // namespace

double Machine::operations_per_second(Units units) const {
  switch (units) {
    case Units::kBf16:
      return bf16_tflops * 1e12;
    case Units::kTf32:
      return tf32_tflops * 1e12;
    case Units::kF32:
      return fp32_tflops * 1e12;
  }
  return 0;
}

absl::Span<const Machine> Machines() { return kMachines; }

absl::StatusOr<Machine> FindMachine(absl::string_view name) {
  for (const Machine& machine : kMachines) {
    if (name == machine.name) return machine;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "no account is kept of a GPU '", name, "'; there are ",
      absl::StrJoin(kMachines, ", ", [](std::string* out, const Machine& of) { absl::StrAppend(out, of.name); })));
}

}  // namespace lockstep::worker
