#include "worker/device/choice/cuda_loader.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <vector>

namespace lockstep::device {
namespace {

using Catch::Contains;

std::string Refusal(const std::string& path) {
  const absl::StatusOr<const CudaLibrary*> library = OpenCudaLibrary(path);
  REQUIRE_FALSE(library.ok());
  const std::string message(library.status().message());
  CHECK_THAT(message, !Contains("\n"));
  return message;
}

TEST_CASE("cuda loader: one of this build is loaded, reports the machine and makes devices", "[device]") {
  const absl::StatusOr<const CudaLibrary*> library = OpenCudaLibrary("worker/fakes/fake_cuda_library.so");
  REQUIRE(library.ok());

  const CudaReport report = (*library)->report();
  const auto device = (*library)->make_device({.ordinal = 1, .memory_limit = 4096, .tf32 = true});

  REQUIRE(report.gpus.size() == 2);
  CHECK(report.problem.empty());
  CHECK(report.gpus[1].peers == std::vector<int>{0});
  REQUIRE(device.ok());
  CHECK((*device)->info().kind == "cuda");
  CHECK((*device)->info().memory == 4096);
  CHECK((*device)->info().tf32);
  CHECK_FALSE((*library)->make_device({.ordinal = 2}).ok());
}

TEST_CASE("cuda loader: one of another build is refused with both builds named", "[device]") {
  CHECK_THAT(Refusal("worker/fakes/fake_cuda_library_other_abi.so"),
             Contains("is of interface 999, this program is lockstep") && Contains("of one build"));
  CHECK_THAT(Refusal("worker/fakes/fake_cuda_library_other_version.so"),
             Contains("is of lockstep 0.0.9, this program is lockstep") && Contains("of one build"));
}

TEST_CASE("cuda loader: a file that is none is refused with what it lacks", "[device]") {
  CHECK_THAT(Refusal("worker/fakes/fake_cuda_library_other_name.so"),
             Contains("it has no function LockstepCudaLibrary"));
  CHECK_THAT(Refusal("worker/fakes/nowhere.so"), Contains("nowhere.so: cannot open shared object file"));
  CHECK_THAT(Refusal("worker/device/choice/BUILD.bazel"), Contains("worker/device/choice/BUILD.bazel"));
  CHECK(absl::IsNotFound(OpenCudaLibrary("worker/fakes/nowhere.so").status()));
  CHECK(absl::IsFailedPrecondition(OpenCudaLibrary("worker/fakes/fake_cuda_library_other_name.so").status()));
}

TEST_CASE("cuda loader: a library that it needs itself is named, with where it comes from", "[device]") {
  CHECK(ExplainLoadError("liblockstep_cuda.so",
                         "libcudnn.so.9: cannot open shared object file: No such file or directory") ==
        "liblockstep_cuda.so needs libcudnn.so.9, which the loader does not find; install CUDA 13, or Python's package "
        "nvidia-cudnn-cu13, and name the folder of the file in LD_LIBRARY_PATH");
  CHECK_THAT(ExplainLoadError("a.so", "libcuda.so.1: cannot open shared object file: No such file or directory"),
             Contains("a.so needs libcuda.so.1") && Contains("driver"));
  CHECK_THAT(ExplainLoadError("a.so", "libz.so: cannot open shared object file: No such file or directory"),
             Contains("a.so needs libz.so") && Contains("LD_LIBRARY_PATH"));
  CHECK(ExplainLoadError("a.so", "a.so: undefined\nsymbol") == "a.so: undefined symbol");
}

TEST_CASE("cuda loader: the variable wins, and the process keeps what it found first", "[device]") {
  setenv("LOCKSTEP_CUDA_LIBRARY", "worker/fakes/fake_cuda_library.so", 1);
  const absl::StatusOr<const CudaLibrary*> first = LoadCudaLibrary();
  setenv("LOCKSTEP_CUDA_LIBRARY", "worker/fakes/nowhere.so", 1);

  REQUIRE(first.ok());
  CHECK(*LoadCudaLibrary() == *first);
  CHECK(FindCuda()->gpus.size() == 2);
}

}  // namespace
}  // namespace lockstep::device
