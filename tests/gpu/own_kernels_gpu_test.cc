// Own kernels on a GPU give the bits of their execution on the host, op by op: what the library for host execution
// chooses and computes, the GPU replays. Needs both libraries (each beside the program, or LOCKSTEP_CUDA_LIBRARY and
// LOCKSTEP_CUDA_ON_HOST_LIBRARY) and a GPU.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "common/graph/training_graph.h"
#include "tests/contracts/device_cases.h"
#include "tests/contracts/device_comparison.h"
#include "worker/device/cuda_loader.h"

namespace lockstep {
namespace {

using device::CudaLibrary;
using device::Device;

std::string OnHostPath() {
  if (const char* const named = std::getenv("LOCKSTEP_CUDA_ON_HOST_LIBRARY"); named != nullptr) return named;
  return std::filesystem::read_symlink("/proc/self/exe").replace_filename("liblockstep_cuda_on_host.so").string();
}

// Equal numbers, in all their bits. NaNs are equal: which one comes out is not computed.
int Differences(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  int count = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const bool same = a[i] == b[i] ? std::signbit(a[i]) == std::signbit(b[i]) : std::isnan(a[i]) && std::isnan(b[i]);
    if (!same) ++count;
  }
  return count;
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
          CHECK(Differences(values, got.at(name)) == 0);
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
