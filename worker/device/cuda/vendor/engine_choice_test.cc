#include "worker/device/cuda/vendor/engine_choice.h"

#include <catch2/catch.hpp>
#include <string>

#include "absl/status/status.h"

namespace lockstep::device::cuda {
namespace {

using Catch::Contains;

EngineChoice SomeChoice() {
  return {.math = "f32", .version = 91900, .gpu = "sm_90x132", .engine = "eng41_k2=0_k12=-1_k27=8"};
}

}  // namespace

TEST_CASE("engine choice: a name spells an engine with its knobs and is read back", "[cuda]") {
  CHECK(PrintEngineChoice(SomeChoice()) == "cudnn:f32:91900:sm_90x132:eng41_k2=0_k12=-1_k27=8");
  const auto read = ParseEngineChoice(PrintEngineChoice(SomeChoice()));
  REQUIRE(read.ok());
  CHECK(*read == SomeChoice());
}

TEST_CASE("engine choice: a name that nobody printed is refused", "[cuda]") {
  for (const std::string name : {"",
                                 "cudnn",
                                 "cudnn:",
                                 "cudnn::::",
                                 "own:conv",
                                 "dnnl:jit:avx2",
                                 "cublaslt:f32:1:sm_90x132:eng0",
                                 "cudnn:f32:91900:sm_90x132",
                                 "cudnn:f32:91900:sm_90x132:",
                                 "cudnn:f32:91900:sm_90x132:eng0:",
                                 "cudnn:f32:91900:sm_90x132:eng0 ",
                                 "cudnn:f32:91900:sm_90x132:eng0\n",
                                 "cudnn:f32:91900:sm_90x132:eng0,k2=1",
                                 "cudnn:f32:91900:sm_90x132:eng0'",
                                 "cudnn:f32:91900:sm_90x132:eng\xc3\xa9",
                                 "cudnn:f32:-1:sm_90x132:eng0",
                                 "cudnn:f32:+1:sm_90x132:eng0",
                                 "cudnn:f32:01:sm_90x132:eng0",
                                 "cudnn:f32: 1:sm_90x132:eng0",
                                 "cudnn:f32::sm_90x132:eng0",
                                 "cudnn:f32:18446744073709551616:sm_90x132:eng0",
                                 " cudnn:f32:91900:sm_90x132:eng0"}) {
    INFO(name);
    CHECK(absl::IsInvalidArgument(ParseEngineChoice(name).status()));
  }
  CHECK(absl::IsInvalidArgument(ParseEngineChoice(PrintEngineChoice(SomeChoice()) + std::string(1, '\0')).status()));
}

TEST_CASE("engine choice: a name for another library, GPU or rounding is refused with what differs", "[cuda]") {
  const EngineChoice here = SomeChoice();
  EngineChoice newer = here, smaller = here, rounded = here;
  newer.version = 92000;
  smaller.gpu = "sm_90x114";
  rounded.math = "tf32";

  CHECK(CheckEngineChoice(here, here).ok());
  CHECK_THAT(std::string(CheckEngineChoice(newer, here).message()), Contains("cuDNN 92000; this is 91900"));
  CHECK_THAT(std::string(CheckEngineChoice(smaller, here).message()), Contains("sm_90x114; this is sm_90x132"));
  CHECK_THAT(std::string(CheckEngineChoice(rounded, here).message()), Contains("for tf32; the node is f32"));
}

}  // namespace lockstep::device::cuda
