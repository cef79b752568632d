// Own kernels on a GPU give the bits of their execution on the host, op by op: what the library for host execution
// chooses and computes, the GPU replays. Needs both libraries (each beside the program, or LOCKSTEP_CUDA_LIBRARY and
// LOCKSTEP_CUDA_ON_HOST_LIBRARY) and a GPU.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/graph/passes/training_graph.h"
#include "tests/contracts/device_cases.h"
#include "tests/contracts/device_comparison.h"
#include "worker/device/choice/cuda_loader.h"

namespace lockstep {
namespace {

using device::CudaLibrary;
using device::Device;

std::string OnHostPath() {
  if (const char* const named = std::getenv("LOCKSTEP_CUDA_ON_HOST_LIBRARY"); named != nullptr) return named;
  return std::filesystem::read_symlink("/proc/self/exe").replace_filename("liblockstep_cuda_on_host.so").string();
}

bool IsNegative(double value) { return std::signbit(value); }

// Where two lists are not equal numbers, in all their bits: how often, and the first place. NaNs are equal: which one
// comes out is not computed.
std::string Differences(const std::vector<double>& expected, const std::vector<double>& got) {
  REQUIRE(expected.size() == got.size());
  int count = 0;
  std::string first;
  for (size_t i = 0; i < got.size(); ++i) {
    const double a = expected[i], b = got[i];
    const bool same = a == b ? IsNegative(a) == IsNegative(b) : std::isnan(a) && std::isnan(b);
    if (same) continue;
    if (++count == 1) first = absl::StrFormat("[%d]: %a on the host, %a on the GPU", i, a, b);
  }
  return count == 0 ? "" : absl::StrCat(count, " of ", got.size(), ", the first at ", first);
}

TEST_CASE("own kernels: a GPU gives the bits of host execution, for every op over random shapes", "[gpu]") {
  const CudaLibrary* const on_gpu = Must(device::LoadCudaLibrary());
  const CudaLibrary* const on_host = Must(device::OpenCudaLibrary(OnHostPath()));
  const auto gpu = Must(on_gpu->make_device({}));
  const auto host = Must(on_host->make_device({}));

  for (const OpType op : AllOps()) {
    DYNAMIC_SECTION(OpName(op)) {
      for (const uint64_t seed : Seeds()) {
        INFO("LOCKSTEP_TEST_SEED=" << seed);
        Dice dice(seed * 100 + static_cast<uint64_t>(op));
        const Graph graph = RandomCase(op, dice).graph;
        const worker::KernelChoices own = ChoicesOf(*host, graph);
        const Values expected = RunCase(*host, graph, seed, false, &own);
        const Values got = RunCase(*gpu, graph, seed, false, &own);
        for (const auto& [name, values] : expected) {
          INFO(name);
          CHECK(Differences(values, got.at(name)) == "");
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
